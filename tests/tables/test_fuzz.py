"""Tables as they come: each ends with a result, or with status 2 and a line that says why."""

import csv
import io
import random
import string

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skpll.cli import DONE, WRONG_INPUT, main
from skpll.tables.formats import read_table

LABELS = ["cat", "dog", "fox", "<b>wolf</b>", "=cmd('calc')!A0", "Füchsin", "a b", "0", "nine"]
GAPS = {"", "?"}
CELLS = [
    "",
    "NA",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "-1e308",
    "1e-320",
    "?",
    "true",
    "0",
    "-",
    "x" * 50,
]


class Fuzzer:
    """Makes one strange table after the other, each determined by its seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def table(self):
        """Give header and rows, mostly sound, with a column `names` of candidates."""
        n = self.random.choice([0, 1, 2, 3, 8, 8, 20, 20, 20, 40, 40])
        columns = {"names": [self.candidates() for _ in range(n)]}
        for place in range(self.random.choice([0, 1, 2, 3, 4, 5, 6])):
            columns[self.name(place)] = self.column(n)
        header = list(columns)
        self.random.shuffle(header)
        return header, [[columns[name][row] for name in header] for row in range(n)]

    def candidates(self):
        labels = [str(i) for i in range(300)] if self.many else LABELS
        chosen = self.random.sample(labels, self.random.choice([0] * self.gaps + [1, 1, 2, 3]))
        chosen += ["?"] * (bool(chosen) and self.random.random() < 0.05)
        blank = self.random.choice(["", " ", "\t"])
        return self.random.choice(["|", f"{blank}|{blank}", "||"]).join(chosen) + blank

    def name(self, place):
        return self.random.choice([f"x{place}", "id", " x ", "", "label", "ü" * 3, "a,b", 'q"q'])

    def column(self, n):
        kind = self.random.choice(["number", "text", "mixed", "constant", "date", "unique", "long"])
        word = lambda: "".join(self.random.choices(string.ascii_lowercase, k=4))  # noqa: E731
        some = [word() for _ in range(3)]
        make = {
            "number": lambda: repr(self.random.gauss(0, 10 ** self.random.randint(-3, 3))),
            "text": lambda: self.random.choice([*some, "=1+1", "@x", "<script>alert(1)</script>"]),
            "mixed": lambda: self.random.choice([*CELLS, repr(self.random.random())]),
            "constant": lambda: some[0],
            "date": lambda: f"20{self.random.randint(10, 30)}-0{self.random.randint(1, 9)}-11",
            "unique": lambda: word() + word(),
            "long": lambda: self.random.choice(["a", 'b "quoted" b', "line\nbreak", "c,d;e"]),
        }[kind]
        return [make() for _ in range(n)]

    def csv_bytes(self):
        """Give the bytes of a text file, and its faults."""
        self.many = self.random.random() < 0.1
        self.gaps = self.random.random() < 0.15
        header, rows = self.table()
        text = io.StringIO()
        ends = self.random.choice(["\n", "\r\n"])
        quoting = self.random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        delimiter = self.random.choice(",,,;\t")
        writer = csv.writer(text, lineterminator=ends, delimiter=delimiter, quoting=quoting)
        writer.writerows([header, *rows])
        content = text.getvalue()
        fault = self.random.choice([None] * 15 + ["ragged", "quote", "cell", "empty", "duplicate"])
        if fault == "ragged":
            content += "1" + delimiter * self.random.choice([0, 1, 30]) + ends
        elif fault == "quote":
            content += '"never closed' + ends
        elif fault == "cell":
            content = content.replace("cat", "c" * 10**6, 1)
        elif fault == "empty":
            content = self.random.choice(["", "\n", " ", ends * 3])
        elif fault == "duplicate":
            content = f"names{delimiter}{content}"
        encoding = self.random.choice(["utf-8", "utf-8-sig", "latin-1", "utf-16"])
        data = content.encode(encoding, errors="replace")
        if self.random.random() < 0.05:
            data = self.random.randbytes(200)
        return data[: len(data) // 2] if self.random.random() < 0.05 else data

    def parquet_file(self, path):
        """Write a Parquet file with typed columns."""
        self.many = self.gaps = False
        n = self.random.choice([0, 1, 5, 30, 30, 30])
        random = np.random.default_rng(self.random.randint(0, 10**9))
        lists = [self.random.sample(LABELS, self.random.choice([1, 2])) for _ in range(n)]
        values = random.normal(size=n)
        columns = {
            "names": self.random.choice(
                [lists, ["|".join(x) for x in lists], random.integers(0, 3, n)]
            ),
            "x": np.where(random.random(n) < 0.2, np.nan, values),
            "i": pa.array(random.integers(-5, 5, n).tolist(), pa.int8()),
            "inf": np.where(random.random(n) < 0.2, np.inf, values),
            "t": pa.array(random.integers(0, 10**12, n), pa.timestamp("ms")),
            "b": pa.array((values > 0).tolist(), pa.bool_()),
            "c": pa.array(random.choice(["u", "v"], n).tolist(), pa.string()).dictionary_encode(),
            "null": pa.nulls(n),
            "nested": pa.array([{"k": 1}] * n, pa.struct({"k": pa.int8()})),
            "bytes": pa.array([b"\xff\x00"] * n, pa.binary()),
        }
        kept = self.random.sample(list(columns), self.random.randint(1, len(columns)))
        pq.write_table(pa.table({name: columns[name] for name in kept}), path)
        if self.random.random() < 0.2:
            path.write_bytes(path.read_bytes()[: self.random.randint(0, 500)])


def check(seed, folder, capsys):
    fuzzer = Fuzzer(seed)
    parquet = fuzzer.random.random() < 0.2
    table = folder / f"{seed}{'.parquet' if parquet else '.csv'}"
    if parquet:
        fuzzer.parquet_file(table)
    else:
        table.write_bytes(fuzzer.csv_bytes())
    suffix = fuzzer.random.choice(["csv", "parquet", "csv", "tsv", "jsonl", "csv.gz", "xlsx"])
    out = folder / f"{seed}-out.{suffix}"
    page = folder / f"{seed}.html"
    words = [str(table), "--candidates", "names", "--out", str(out), "--report", str(page)]
    words += ["--method", fuzzer.random.choice(["plloo", "plloo", "plknn", "clpl", "sppll"])]
    asked = folder / f"{seed}-out-questions.{suffix}"
    words += fuzzer.random.choice(
        [[], ["--empty", "any"], ["--escape-formulas"], ["--exclude", "names"], ["--ask", "3"]]
    )
    before = set(folder.iterdir())
    status = main(["disambiguate", *words])
    printed = capsys.readouterr()
    assert status in (DONE, WRONG_INPUT), printed.err
    assert "Traceback" not in printed.err
    made = set(folder.iterdir()) - before
    if status == WRONG_INPUT:
        assert made == set()
        assert printed.err.startswith("skpll: ")
        assert printed.err.count("\n") == 1
        assert len(printed.err) < 1000
    else:
        assert made == {out, page} | ({asked} if "--ask" in words else set())
        check_output(out, int(printed.out.partition(" rows")[0]))
        text = page.read_text(encoding="utf-8")
        assert "<script>alert" not in text
        assert "<b>wolf" not in text
    return status


def check_output(path, n_rows):
    """Every label is one of the candidates, and the confidences are what they say."""
    rows = read(path)
    assert len(rows) == n_rows
    prefix = "skpll_" if "skpll_label" in rows[0] else ""
    for row in rows:
        names = row["names"] or ""
        given = [str(x) for x in names] if isinstance(names, list) else str(names).split("|")
        given = {label.strip() for label in given} - GAPS
        chosen = str(row[f"{prefix}label"]).removeprefix("'")
        assert chosen in {label.removeprefix("'") for label in given} or not given
        assert 0 <= float(row[f"{prefix}confidence"]) <= 1
        if given:
            unanimous = len(given) == 1
            assert str(row[f"{prefix}unanimous"]).lower() == str(unanimous).lower()
            assert (row[f"{prefix}runner_up"] in ("", None)) == unanimous


def read(path):
    if path.suffix != ".csv":
        table = read_table(path)
        columns = {name: table.column(name).to_pylist() for name in table.names}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    before = csv.field_size_limit(10**7)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header = file.readline()
            file.seek(0)
            delimiter = max(",;\t", key=header.count)  # that of the table
            return list(csv.DictReader(file, delimiter=delimiter))
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize("block", range(6))
def test_strange_tables(block, tmp_path, capsys):
    statuses = [check(seed, tmp_path, capsys) for seed in range(25 * block, 25 * block + 15)]
    assert {DONE, WRONG_INPUT} == set(statuses)


@pytest.mark.slow
def test_a_thousand_strange_tables(tmp_path, capsys):
    statuses = [check(seed, tmp_path, capsys) for seed in range(1000, 2000)]
    assert 300 < statuses.count(DONE) < 900


def test_a_million_characters_in_a_feature(tmp_path, capsys):
    table, page = tmp_path / "t.csv", tmp_path / "t.html"
    lines = [f"{i % 7},{'ab'[i % 2]},{'cat' if i % 7 < 4 else 'cat|dog'}\n" for i in range(40)]
    table.write_text("x,text,names\n" + "".join(lines) + f"1,{'y' * 10**6},dog\n")
    words = [str(table), "--candidates", "names", "--report", str(page)]
    assert main(["disambiguate", *words, "--out", str(tmp_path / "out.csv")]) == DONE
    assert len((tmp_path / "out.csv").read_text()) > 10**6
    assert len(page.read_text(encoding="utf-8")) < 10**5
