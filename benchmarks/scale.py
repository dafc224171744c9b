"""PL-LOO on many examples: time, memory, and labels found.

Made-up clusters, single precision, candidates by chance. Every size runs in a process of its own.

python -m benchmarks.scale [--quick]
python -m benchmarks.scale --rows 1281167 --features 768 --classes 1000 --false 3
python -m benchmarks.scale --rows 1281167 --features 768 --classes 1000 --false 3 --device cuda
python -m benchmarks.scale --rows 3750000 --features 400 --classes 50 --dask [--lose-a-worker]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.report import Record, save, show

TITLE = "PL-LOO on many examples, made-up clusters in single precision"

CHUNK = 25_000
"""Rows that are drawn together."""

IMAGENET = {"rows": 1_281_167, "features": 768, "classes": 1000, "false": 3}


def made_part(start: int, size: int, features: int, classes: int, false: int) -> Any:
    """Draw some of the rows: features, true labels, and candidates with the truth first."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((classes, features), dtype=np.float32)
    centers *= 3 / np.sqrt(features)
    rng = np.random.default_rng([1, start])
    y = rng.integers(0, classes, size)
    X = rng.standard_normal((size, features), dtype=np.float32)
    X += centers[y]
    offsets = np.argpartition(rng.random((size, min(classes, 200) - 1)), false)[:, :false] + 1
    spread = rng.integers(1, max(2, (classes - 1) // (min(classes, 200) - 1) + 1), (size, 1))
    return X, y, np.hstack([y[:, None], (y[:, None] + offsets * spread) % classes])


def made(rows: int, features: int, classes: int, false: int) -> Any:
    """Draw all rows: features, candidate sets and true labels."""
    from skpll import CandidateSets

    X, y = np.empty((rows, features), dtype=np.float32), np.empty(rows, dtype=np.int64)
    sets = np.empty((rows, false + 1), dtype=np.int32)
    for start in range(0, rows, CHUNK):
        part = slice(start, min(start + CHUNK, rows))
        X[part], y[part], sets[part] = made_part(start, part.stop - start, features, classes, false)
    sets.sort(axis=1)
    indptr = np.arange(rows + 1) * (false + 1)
    return X, CandidateSets(indptr, sets.ravel(), np.arange(classes)), y


def memory() -> float:
    """Peak memory of this process so far, in MB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(
    rows: int,
    features: int,
    classes: int,
    false: int,
    kernel: str = "linear",
    device: str = "cpu",
) -> Record:
    """Fit once; runs in a process of its own."""
    import sklearn

    from skpll import PLLOO

    warm = made(60_000, 5, 4, 1)  # whatever is imported at first use, is now
    PLLOO(kernel="linear", alpha=0.1, prior_strength=0.2).fit(*warm[:2])
    base = memory()
    X, S, y = made(rows, features, classes, false)
    record: Record = {
        "case": "linear" if kernel == "linear" else f"{kernel}, 500 landmarks",
        "n": rows,
        "d": features,
        "q": classes,
        "candidates": false + 1,
        "features [MB]": X.nbytes / 2**20,
    }
    landmarks = max(500, features) if kernel == "linear" else 500
    model = PLLOO(kernel=kernel, n_landmarks=landmarks)
    if device != "cpu":
        import torch

        X = torch.as_tensor(X, device=device)
        warm_up = torch.as_tensor(warm[0], device=device)
        sklearn.set_config(array_api_dispatch=True)
        PLLOO(kernel="linear", alpha=0.1, prior_strength=0.2).fit(warm_up, warm[1])
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    start, work = time.perf_counter(), time.process_time()
    model.fit(X, S)
    record["fit [s]"] = time.perf_counter() - start
    record["processor [s]"] = time.process_time() - work
    if device == "cpu":
        record["peak [MB]"] = memory() - base
    else:
        record["peak [MB]"] = torch.cuda.max_memory_allocated() / 2**20
    record["peak / features"] = record["peak [MB]"] / record["features [MB]"]
    record["rounds"] = model.n_iter_
    record["labels found"] = float((model.transduction_ == y).mean())
    start = time.perf_counter()
    model.predict(X[:100_000])
    record["predict 100 000 [s]"] = time.perf_counter() - start
    return record


def measure_cluster(
    rows: int, features: int, classes: int, false: int, lose_a_worker: bool = False
) -> Record:
    """Fit once on two local workers of 1 GB each, which read the rows whenever they need them."""
    import tempfile
    from pathlib import Path

    import dask.array as da
    from dask import delayed
    from distributed import Client, LocalCluster

    from skpll import PLLOO
    from skpll.leave_one_out._loop import Loop

    sizes = [min(CHUNK, rows - start) for start in range(0, rows, CHUNK)]
    folder = tempfile.TemporaryDirectory()
    names = [str(Path(folder.name) / str(place)) for place in range(len(sizes))]
    for place, size in enumerate(sizes):
        X, y, sets = made_part(CHUNK * place, size, features, classes, false)
        np.save(f"{names[place]}-rows.npy", X)
        np.savez(f"{names[place]}.npz", y=y, sets=sets)

    def column(function: Any, dtype: Any, *width: int) -> Any:
        parts = [delayed(function)(name, classes) for name in names]
        return da.concatenate(
            [
                da.from_delayed(part, (size, *width), dtype=dtype)
                for part, size in zip(parts, sizes, strict=True)
            ]
        )

    X = column(_rows, np.float32, features)
    S = column(_indicators, np.int8, classes)
    y = column(_labels, np.int64)
    with (
        folder,
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        if lose_a_worker:
            rounds, lost = Loop.rounds, []

            def losing(self: Any) -> Any:
                for record in rounds(self):
                    if self.store.shape[0] == rows and not lost:
                        lost.append(next(iter(client.run(os.getpid).values())))
                        os.kill(lost[0], signal.SIGKILL)
                    yield record

            Loop.rounds = losing  # type: ignore[method-assign]
        start = time.perf_counter()
        model = PLLOO(kernel="linear", n_landmarks=features).fit(X, S)
        seconds = time.perf_counter() - start
        return {
            "case": "two workers of 1 GB" + (", one is lost" if lose_a_worker else ""),
            "n": rows,
            "d": features,
            "q": classes,
            "candidates": false + 1,
            "features [MB]": rows * features * 4 / 2**20,
            "fit [s]": seconds,
            "client [MB]": memory(),
            "rounds": model.n_iter_,
            "change": model.history_[-1]["change"],
            "labels found": float((model.transduction_ == y).mean().compute()),
        }


def _rows(name: str, classes: int) -> Any:
    del classes
    return np.load(f"{name}-rows.npy")


def _labels(name: str, classes: int) -> Any:
    del classes
    return np.load(f"{name}.npz")["y"]


def _indicators(name: str, classes: int) -> Any:
    drawn = np.load(f"{name}.npz")
    y, sets = drawn["y"], drawn["sets"]
    matrix = np.zeros((len(y), classes), dtype=np.int8)
    np.put_along_axis(matrix, sets, 1, axis=1)
    return matrix


def measured(function: str, **settings: Any) -> Record:
    """Call one of the functions above in a process of its own."""
    code = (
        "import json; from benchmarks import scale\n"
        "if __name__ == '__main__':\n"
        f"    print(json.dumps(scale.{function}(**{settings!r})))"
    )
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, env=environment
    )
    record: Record = json.loads(done.stdout.splitlines()[-1])
    return record


def run(quick: bool) -> list[Record]:
    """Measure growth with the examples, with the classes, and with the candidates."""
    sizes = (60_000, 120_000) if quick else (100_000, 1_000_000)
    cases: list[dict[str, Any]] = []
    for kernel in ("linear", "rbf"):
        shape = {"features": 100, "classes": 50, "false": 2, "kernel": kernel}
        cases += [{"rows": rows, **shape} for rows in sizes]
    growth = {"rows": sizes[0], "features": 100}
    cases += [{**growth, "classes": classes, "false": 2} for classes in (10, 100, 1000)]
    cases += [{**growth, "classes": 100, "false": false} for false in (5, 11)]
    if not quick:
        cases.append(IMAGENET)
    return [measured("measure", **case) for case in cases]


def main() -> None:
    """Run what the command line asks for: everything, or one size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--rows", type=int, help="one size: the number of rows")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--classes", type=int, default=50)
    parser.add_argument("--false", type=int, default=2, help="false candidates of a row")
    parser.add_argument("--device", default="cpu", help="cpu, or a device of PyTorch")
    parser.add_argument("--dask", action="store_true", help="on two local workers of 1 GB")
    parser.add_argument("--lose-a-worker", action="store_true")
    options = vars(parser.parse_args())
    quick, dask, lose = (options.pop(name) for name in ("quick", "dask", "lose_a_worker"))
    if options["rows"] is None:
        records = run(quick)
    elif dask:
        options.pop("device")
        records = [measured("measure_cluster", **options, lose_a_worker=lose)]
    else:
        records = [measured("measure", **options)]
    show(TITLE, records)
    print(save("scale", records))


if __name__ == "__main__":
    main()
