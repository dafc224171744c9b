"""A large Parquet file takes bounded memory and shows how far it is."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

LIMITS = {"plknn": 4, "sppll": 9}
"""The work may take this number of times the decoded size of the file, beside the libraries. Of
SP-PLL, each fold of the calibration has its own rows."""

PROGRAM = """
import sys
import pandas, pyarrow.parquet, sklearn.compose
import skpll
from skpll.cli import main
skpll.all_methods()
size = lambda: int(next(x for x in open('/proc/self/status') if x.startswith('VmHWM')).split()[1])
before = size()
status = main(sys.argv[1:])
print('grown', size() - before)
sys.exit(status)
"""


def write_parquet(path, n_rows, n_columns=20, n_classes=10):
    """Write clouds of points; four rows in five have a false candidate."""
    random = np.random.default_rng(0)
    centers = random.normal(scale=1.2, size=(n_classes, n_columns))
    names = np.array([f"class_{code}" for code in range(n_classes)])
    writer = None
    for start in range(0, n_rows, 100_000):
        truth = random.integers(n_classes, size=min(100_000, n_rows - start))
        X = centers[truth] + random.normal(size=(len(truth), n_columns))
        false = names[(truth + random.integers(1, n_classes, size=len(truth))) % n_classes]
        single = random.random(len(truth)) < 0.2
        both = np.char.add(np.char.add(names[truth], "|"), false)
        columns = {f"x{place}": X[:, place] for place in range(n_columns)}
        columns["names"] = np.where(single, names[truth], both)
        part = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    writer.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="counts memory as Linux does")
@pytest.mark.parametrize(
    ("method", "n_rows"),
    [
        ("plknn", 36_000),
        pytest.param("sppll", 1_000_000, marks=pytest.mark.slow),
    ],
)
def test_a_large_parquet_file(terminal, tmp_path, method, n_rows):
    path, out = tmp_path / "large.parquet", tmp_path / "out.parquet"
    write_parquet(path, n_rows)
    decoded = pq.read_table(path).nbytes
    words = [path, "--candidates", "names", "--method", method, "--out", out]
    if method == "sppll":  # features of a kernel take 500 numbers a row
        words += ["--set", "kernel=linear"]
    status, shown = terminal(PROGRAM, "disambiguate", *words)
    assert status == 0, shown
    grown = 1024 * int(re.search(r"grown (\d+)", shown)[1])
    floor = 150 * 2**20  # the encoder, its sample and the compiled code, whatever the size
    assert grown < max(LIMITS[method] * decoded, floor)
    name = "PL-KNN" if method == "plknn" else "SPPLL"
    steps = {int(done) for done in re.findall(rf"{name}.*?(\d+)/\d+", shown)}
    assert len(steps) >= 2  # the bar moves
    written = pq.read_table(out, columns=["x0", "names", "label"])
    assert written["x0"].equals(pq.read_table(path, columns=["x0"])["x0"])
    inside = [
        a in b for a, b in zip(*(written[c].to_pylist() for c in ("label", "names")), strict=True)
    ]
    assert all(inside)
