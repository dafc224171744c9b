"""Deep networks on MNIST and Fashion-MNIST, beside the figures that the papers print.

    python -m benchmarks.deep papers                     the schedules of the papers in full
    python -m benchmarks.deep instance                   sets that depend on the example
    python -m benchmarks.deep instead                    PL-LOO and copies of rows on the pixels
    python -m benchmarks.deep papers --only mnist,proden    some of the tasks
    python -m benchmarks.deep papers --table             the table of what is there
    python -m benchmarks.deep smoke                      speed of a step, in a minute or two

The shorter schedules are an experiment of the package: ``skpll run deep-uniform``.

Every result is written when it is there, into NAME.json or the file that `--out` names, and the
same command goes on after a stop. All configurations of the first seed come first. On a GPU add
`--graphs --workers 10`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

N_TRAIN = 60_000

PRINTED = {
    **{("mlp", "mnist", 0.5, loss): v for loss, v in
       {"proden": 97.97, "rc": 97.86, "cc": 97.73}.items()},
    **{("mlp", "fashion_mnist", 0.5, loss): v for loss, v in
       {"proden": 88.94, "rc": 88.59, "cc": 88.93}.items()},
    **{("lenet", "fashion_mnist", q, loss): v for loss, row in {
        "proden": (89.15, 89.10, 88.22, 85.87),
        "rc": (92.64, 92.08, 92.01, 90.83),
        "cc": (92.26, 91.75, 90.92, 89.73),
        "lws": (91.44, 91.85, 90.59, 89.46),
        "crdpll": (93.79, 93.72, 93.38, 92.19),
    }.items() for q, v in zip((0.1, 0.3, 0.5, 0.7), row, strict=True)},
    ("lenet", "fashion_mnist", 0.0, "truth"): 93.92,
}  # fmt: skip
"""Test accuracy in percent: Xu et al. 2021, Table 2; Wu et al. 2022, Table 1."""

PRINTED_LIKE = {"valen": "mlp", "wu": "lenet", "wu-lenet5": "lenet"}
"""Protocols that are compared with the same figures."""


@dataclass(frozen=True)
class Task:
    """One fit.

    `protocol` says how to train (`NETWORKS`), `q` how the sets are drawn: each false label with
    this probability; 0 is the truth, and the protocol `instance` draws by a model's confidence.
    """

    protocol: str
    data: str
    q: float
    method: str
    seed: int

    @property
    def key(self) -> str:
        return "/".join(str(part) for part in asdict(self).values())

    @property
    def kind(self) -> str:
        return self.key.rsplit("/", 1)[0]


DECAY = {"weight_decay": 1e-4}
WIDE = {"channels": (32, 64), "hidden": (256, 84), "batch_norm": True}
NETWORKS = {
    # As in the experiment deep-uniform: a quarter of the epochs of the papers.
    "mlp": {
        "module": "mlp", "max_epochs": 50, "lr": 0.01, "batch_size": 256,
        "optimizer_params": DECAY, "milestones": (25, 38),
    },
    # Four hidden layers of 300 units; 500 epochs in the paper.
    "valen": {
        "module": "mlp", "max_epochs": 200, "lr": 0.01, "batch_size": 256,
        "optimizer_params": DECAY,
    },
    # AutoAugment and Cutout in the paper; flip, crop and Cutout here.
    "wu": {
        "module": "lenet", "max_epochs": 200, "lr": 0.1, "batch_size": 64, "module_params": WIDE,
        "optimizer_params": DECAY, "milestones": (100, 150), "augmented": True,
    },
    # The same with the widths of LeNet-5 as it was published.
    "wu-lenet5": {
        "module": "lenet", "max_epochs": 200, "lr": 0.1, "batch_size": 64,
        "optimizer_params": DECAY, "milestones": (100, 150), "augmented": True,
    },
    "instance": {
        "module": "mlp", "max_epochs": 50, "lr": 0.01, "batch_size": 256,
        "optimizer_params": DECAY,
    },
}  # fmt: skip

LEARNING_RATES = {("wu", "lws"): 0.01}
"""Where it differs from the others of its protocol: at 0.1 the sigmoid losses of LWS saturate where
the hidden layers have no batch normalization."""

FASHION = "fashion_mnist"
DATA = (FASHION, "mnist")
BASELINES = ("plloo", "plloo-on-features", "weighted-copies")
CONFIGURATIONS = {
    "papers": [
        *(("valen", data, 0.5, loss) for data in DATA for loss in ("proden", "rc", "cc")),
        *(("wu", FASHION, q, loss) for q in (0.1, 0.7) for loss in ("proden", "rc", "cc")),
        *(("wu", FASHION, q, loss) for loss in ("crdpll", "lws") for q in (0.1, 0.7)),
        ("wu", FASHION, 0.0, "truth"),
        *(("valen", data, 0.0, "truth") for data in DATA),
        *(("wu", FASHION, q, loss) for q in (0.3, 0.5)
          for loss in ("proden", "rc", "cc", "crdpll")),
        ("wu-lenet5", FASHION, 0.0, "truth"),
        *(("wu-lenet5", FASHION, q, loss) for q in (0.1, 0.7) for loss in ("proden", "rc", "cc")),
    ],
    "instance": [
        ("instance", FASHION, 0.0, loss) for loss in ("proden", "cross", "rc", "cc", "truth")
    ],
    "instead": [
        *(("mlp", data, q, method) for method in BASELINES[:2] for q in (0.5, 0.1, 0.7, 0.3)
          for data in DATA),
        *(("mlp", data, 0.5, "weighted-copies") for data in DATA),
    ],
}  # fmt: skip
"""The experiments: protocol, data, share of false labels and method of each task."""


def tasks_of(configurations: list[tuple[str, str, float, str]], n_seeds: int) -> list[Task]:
    return [Task(*entry, seed) for seed in range(n_seeds) for entry in configurations]


@lru_cache(maxsize=2)
def pictures(name: str) -> tuple[np.ndarray, np.ndarray]:
    from skpll.datasets import load_dataset

    X, _, y = load_dataset(name, return_X_S_y=True)
    X = X.astype(np.float32) / 255
    return (X - X[:N_TRAIN].mean()) / X[:N_TRAIN].std(), y


def network(task: Task, loss: str, options: argparse.Namespace):
    """Make the network of a task's protocol, which has not been trained."""
    from skorch.callbacks import LRScheduler

    from skpll.deep import DeepPartialLabelClassifier, compose, crop, cutout, flip

    settings = dict(NETWORKS[task.protocol])
    settings["lr"] = LEARNING_RATES.get((task.protocol, loss), settings["lr"])
    milestones = settings.pop("milestones", None)
    if milestones is not None:
        settings["callbacks"] = [LRScheduler("MultiStepLR", milestones=milestones, gamma=0.1)]
    if settings.pop("augmented", False):
        mirrored = [] if task.data == "mnist" else [flip()]  # digits have a left and a right
        settings["augment"] = compose(crop(2), *mirrored, cutout(8))
    if loss == "crdpll":
        settings["loss_params"] = {"ramp": settings["max_epochs"] // 2}
    settings["loss"] = "cc" if loss == "truth" else loss
    return DeepPartialLabelClassifier(
        **settings, cuda_graphs=options.graphs, random_state=task.seed
    )


def candidate_sets(task: Task, X: np.ndarray, y: np.ndarray, options: argparse.Namespace):
    from skpll import as_candidates
    from skpll.datasets import make_partial_labels

    if task.method == "truth":
        return as_candidates(y)
    if task.protocol == "instance":
        teacher = network(task, "truth", options).set_params(max_epochs=10, random_state=0)
        return make_partial_labels(
            y, kind="instance", X=X, estimator=teacher, random_state=task.seed
        )
    # Lv et al. and Xu et al. add a label where none was drawn; Wu et al. do not.
    added = task.protocol == "valen"
    return make_partial_labels(y, kind="flip", q=task.q, at_least_one=added, random_state=task.seed)


def model_of(task: Task, options: argparse.Namespace):
    from sklearn.ensemble import HistGradientBoostingClassifier

    from skpll import PLLOO
    from skpll.baselines import WeightedCopies

    if task.method.startswith("plloo"):
        return PLLOO(random_state=task.seed)
    if task.method == "weighted-copies":
        return WeightedCopies(HistGradientBoostingClassifier(max_iter=30, max_bins=63))
    return network(task, task.method, options)


def run(task: Task, options: argparse.Namespace) -> dict[str, object]:
    import torch

    if task.method not in BASELINES:
        torch.set_num_threads(1)
    X, y = pictures(task.data)
    X_train, y_train, X_test, y_test = X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]
    S = candidate_sets(task, X_train, y_train, options)
    model = model_of(task, options)
    begin = time.perf_counter()
    if task.method == "plloo-on-features":
        # Features of a network that was trained on the same sets.
        trained = network(task, "proden", options).fit(X_train, S)
        X_train, X_test = trained.embed(X_train), trained.embed(X_test)
    model.fit(X_train, S)
    seconds = time.perf_counter() - begin
    right = model.predict(X_test) == y_test
    recalls = np.array([right[y_test == label].mean() for label in np.unique(y_test)])
    return {
        "accuracy": round(100 * float(right.mean()), 3),
        "lowest_recall": round(100 * float(recalls.min()), 1),
        "transductive": round(100 * float(np.mean(model.transduction_ == y_train)), 3),
        "seconds": round(seconds, 2),
        "epochs": int(getattr(model, "max_epochs", 0)),
        "batch_size": int(getattr(model, "batch_size", 0)),
        "candidates": round(float(S.sizes.mean()), 3),
        "rows": len(X_train),
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "graphs": bool(options.graphs),
    }


def write(path: Path, results: dict[str, dict[str, object]]) -> None:
    """Replace the file at once, so that a stop leaves the old or the new one."""
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps(results, indent=1, sort_keys=True))
    temporary.replace(path)


def attempt(task: Task, options: argparse.Namespace) -> tuple[str, dict[str, object] | None]:
    """Return the key of a task and its result, or None if it fails."""
    try:
        return task.key, run(task, options)
    except Exception as error:
        print(task.key, "failed:", type(error).__name__, error, flush=True)
        return task.key, None


def work(tasks: list[Task], path: Path, options: argparse.Namespace) -> None:
    """Run the tasks whose results are not there, and write each result when it is there."""
    results = json.loads(path.read_text()) if path.exists() else {}
    left = [delayed(attempt)(task, options) for task in tasks if task.key not in results]
    for key, result in Parallel(options.workers, return_as="generator_unordered")(left):
        if result is not None:
            results[key] = result
            print(key, result, flush=True)
            write(path, results)


def table(path: Path) -> str:
    """Write a Markdown table: a row for each method, a column for each share of false labels.

    Entries are the mean accuracy, its standard deviation over seeds, and the figure in print.
    """
    groups: dict[tuple[str, str, str], dict[float, list[dict]]] = defaultdict(dict)
    for key, result in json.loads(path.read_text()).items():
        protocol, data, q, method, _ = key.split("/")
        groups[protocol, data, method].setdefault(float(q), []).append(result)
    shares = sorted({q for row in groups.values() for q in row})
    lines = [
        "| network | data | method | " + " | ".join(f"q = {q:g}" for q in shares) + " | seconds |",
        "|---" * (4 + len(shares)) + "|",
    ]
    for entry, row in sorted(groups.items()):
        seconds = np.mean([result["seconds"] for found in row.values() for result in found])
        cells = [cell(entry, q, row.get(q, [])) for q in shares]
        lines.append(f"| {' | '.join(entry)} | {' | '.join(cells)} | {seconds:.0f} |")
    return "\n".join(lines)


def cell(entry: tuple[str, str, str], q: float, found: list[dict]) -> str:
    """Write the results of one method at one share: "mean ± spread (printed)"."""
    if not found:
        return ""
    protocol, data, method = entry
    accuracy = np.array([result["accuracy"] for result in found])
    printed = PRINTED.get((PRINTED_LIKE.get(protocol, protocol), data, q, method))
    spread = f" ± {accuracy.std():.2f}" if len(found) > 1 else ""
    return f"{accuracy.mean():.2f}{spread}{'' if printed is None else f' ({printed:.2f})'}"


def smoke(options: argparse.Namespace) -> None:
    """Check that a GPU gives the same with and without graphs, and time a step of each kind."""
    import torch

    print("torch", torch.__version__, "cuda", torch.cuda.is_available(), flush=True)
    X, y = pictures(FASHION)
    task = Task("valen", FASHION, 0.5, "proden", 0)
    S = candidate_sets(task, X[:N_TRAIN], y[:N_TRAIN], options)
    rows = slice(0, N_TRAIN)
    for protocol, loss in (("valen", "proden"), ("wu", "proden"), ("wu", "crdpll")):
        for graphs in (False, True):
            model = network(Task(protocol, FASHION, 0.5, loss, 0), loss, options)
            model.set_params(max_epochs=2, cuda_graphs=graphs, callbacks=None)
            begin = time.perf_counter()
            try:
                model.fit(X[rows], S[rows])
            except Exception as error:
                print(protocol, loss, "graphs", graphs, "FAILED", type(error).__name__, error)
                continue
            first = time.perf_counter() - begin
            durations = [round(row["dur"], 3) for row in model.net_.history]
            accuracy = np.mean(model.predict(X[N_TRAIN:]) == y[N_TRAIN:])
            print(protocol, loss, "graphs", graphs, "epochs", durations, f"fit {first:.1f} s",
                  f"accuracy {accuracy:.4f}", model.history_, flush=True)  # fmt: skip


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=[*CONFIGURATIONS, "smoke"])
    parser.add_argument("--out", type=Path, help="by default the experiment's name")
    parser.add_argument("--table", action="store_true")
    parser.add_argument(
        "--only", default="", help="a protocol, data, q or method; with commas all of them"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--graphs", action="store_true", help="record steps as CUDA graphs")
    return parser.parse_args()


def chosen(task: Task, options: argparse.Namespace) -> bool:
    """Whether all names that are asked for are among those of the task."""
    names = {task.protocol, task.data, task.method, f"{task.q:g}"}
    return set(filter(None, options.only.split(","))) <= names


def main() -> None:
    options = arguments()
    if options.experiment == "smoke":
        smoke(options)
        return
    path = options.out or Path(f"{options.experiment}.json")
    if options.table:
        print(table(path))
        return
    tasks = tasks_of(CONFIGURATIONS[options.experiment], options.seeds)
    work([task for task in tasks if chosen(task, options)], path, options)
    if path.exists():
        print(table(path))


if __name__ == "__main__":
    main()
