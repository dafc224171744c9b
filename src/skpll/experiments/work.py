"""What a task does: prepare its data, scale, choose parameters, fit, measure.

Data are prepared once: the first process that needs a data set writes it into a folder that all
workers share; the others map the same file into their memory.

Everything is learned from the training part: the scaling, and the parameters, which inner folds
choose by candidate sets alone. The truth is used only to measure, and to fit the methods in
`skpll.experiments.tasks.USES_TRUTH`.

A metric is a line in `metrics_of`. Stores keep all metrics, and frames of results have a column for
each.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.metrics import recall_score
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, StandardScaler

from skpll import metrics
from skpll.candidates import CandidateSets, as_candidates

from .tasks import USES_TRUTH, Division, Task, Values, make_method

_SEED = 0  # of the choice of rows, and of random methods without a seed of their own

Features: TypeAlias = "NDArray[np.float64] | sparse.csr_array"
Labels: TypeAlias = NDArray[Any]


# -- data ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskData:
    """Features, candidate sets and true labels.

    Attributes
    ----------
    X : array or CSR array of shape (n, d)
        The features.
    S : CandidateSets
        What a method may learn from.
    y : array of shape (n,)
        The truth, for measuring only.
    ordered : bool
        Whether labels are numbers that may be nearly right.
    """

    X: Features
    S: CandidateSets
    y: Labels
    ordered: bool = False

    def part(self, rows: NDArray[np.intp]) -> TaskData:
        """Return some of the rows."""
        return replace(self, X=self.X[rows], S=self.S[rows], y=self.y[rows])


def prepare_data(task: Task, folder: str) -> TaskData:
    """Return the data of a task, as files mapped into memory.

    Parameters
    ----------
    task : Task
        The task.
    folder : str
        Where prepared data are shared.

    Returns
    -------
    TaskData
    """
    source = (task.dataset, task.rows)
    data: TaskData = _shared(folder, source, lambda: _load(*source))
    if task.p is None:
        return data
    wanted = (*source, task.p, task.r, task.corruption_seed, task.kind, task.noise)
    return replace(data, S=_shared(folder, wanted, lambda: _corrupt(data, task)))


def _shared(folder: str, wanted: tuple[object, ...], make: Callable[[], Any]) -> Any:
    """Map an object into memory; make it and write it first if its file does not exist.

    The file appears under its name at once, so two processes may do the same without harm.
    """
    import joblib

    place = Path(folder, joblib.hash(wanted))
    if not place.exists():
        scratch = place.with_suffix(f".{os.getpid()}")
        joblib.dump(make(), scratch)
        scratch.replace(place)
    return joblib.load(place, mmap_mode="r")


def _load(dataset: str, rows: int | None) -> TaskData:
    """Load a data set; one without candidate sets has the truth in their place."""
    from skpll.datasets import dataset_info, load_dataset

    found = load_dataset(dataset)
    X = np.ascontiguousarray(found.X) if isinstance(found.X, np.ndarray) else found.X.tocsr()
    y = np.asarray(found.y)
    known = y if found.candidates is None else found.candidates
    S = as_candidates(known, classes=found.classes)
    data = TaskData(X, S, y, dataset_info(dataset).ordered)
    if rows is None:
        return data
    return data.part(np.sort(np.random.RandomState(_SEED).permutation(len(y))[:rows]))


def _corrupt(data: TaskData, task: Task) -> CandidateSets:
    """Make candidate sets from true labels."""
    from skpll.datasets import make_partial_labels

    usual = {"p": task.p, "r": task.r}
    options: dict[str, dict[str, Any]] = {
        "dictionary": {"kind": "dictionary", "X": data.X, "min_share": task.p},
        "flip": {"kind": "flip", "q": task.p},
        "feature": {**usual, "kind": "feature", "X": data.X},
        "pairs": {**usual, "epsilon": 0.7},  # probability of the coupled label
    }
    asked = options.get(task.kind, usual)
    asked |= {"noise": task.noise, "random_state": task.corruption_seed}
    classes = data.S.classes
    S = make_partial_labels(data.y, classes=classes.tolist(), **asked)
    if task.kind != "constant":
        return S
    # The added label is the last one, and the last of each set.
    last = classes[-1] + 1 if classes.dtype.kind in "iuf" else f"{classes[-1]} (none)"
    n, q = S.shape
    indices = np.insert(S.indices, S.indptr[1:], q)
    return CandidateSets(S.indptr + np.arange(n + 1), indices, np.append(classes, last))


def divide(n: int, division: Division) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the training and the test rows.

    Parameters
    ----------
    n : int
        Number of rows.
    division : Division
        The division.

    Returns
    -------
    train, test : int arrays
    """
    if division.kind == "last":
        train, test = np.split(np.arange(n), [n - round(n * (division.test_size or 0))])
        return train, test
    if division.kind == "kfold":
        folds = KFold(division.folds, shuffle=True, random_state=division.seed)
    else:
        folds = ShuffleSplit(1, test_size=division.test_size, random_state=division.seed)
    return list(folds.split(np.zeros(n)))[division.split]


# -- what is done with them ----------------------------------------------------------------


def run_task(task: Task, folder: str) -> Values:
    """Run a task.

    Parameters
    ----------
    task : Task
        The task.
    folder : str
        Where prepared data are shared.

    Returns
    -------
    dict
        See `measure`.
    """
    return measure(task, prepare_data(task, folder))


def measure(task: Task, data: TaskData) -> Values:
    """Choose parameters and fit on the training part, and measure on the test part.

    Parameters
    ----------
    task : Task
        The task.
    data : TaskData
        Its data.

    Returns
    -------
    dict
        A row of the store: ``metrics`` (a dict of floats), ``chosen`` (the parameters that inner
        folds chose), ``seconds`` (of the whole task), ``fit_seconds`` (processor time of the final
        fit), ``n_train`` and ``n_test``.
    """
    start = time.perf_counter()
    train, test = (data.part(rows) for rows in divide(len(data.y), task.split))
    labels = train.y if task.method in USES_TRUTH else train.S
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _model(task, train.X)
        chosen = _choose(model, task, train.X, labels)
        begin = time.process_time()
        model.fit(train.X, labels)
        fit_seconds = time.process_time() - begin
        found = metrics_of(model, train, test, knew_truth=task.method in USES_TRUTH)
    return {
        "metrics": found,
        "chosen": chosen,
        "seconds": time.perf_counter() - start,
        "fit_seconds": fit_seconds,
        "n_train": len(train.y),
        "n_test": len(test.y),
    }


def _model(task: Task, X: Features) -> Pipeline:
    """Return the pipeline of scaling and method."""
    method = make_method(task.method, task.parameters)
    if method.get_params().get("random_state", _SEED) is None:
        method.set_params(random_state=_SEED)
    return Pipeline([("scale", _scalers(X).get(task.scaling)), ("method", method)])


def _scalers(X: Features) -> dict[str, TransformerMixin | None]:
    """Return a transformer for each scaling; None leaves the features as they are.

    Zeros of sparse features stay zeros: their range is counted from there.
    """
    is_sparse = sparse.issparse(X)
    return {
        "zscore": StandardScaler(with_mean=not is_sparse),
        "minmax": MaxAbsScaler() if is_sparse else MinMaxScaler(),
        "none": None,
        "sqrt": FunctionTransformer(_signed_root),
    }


def _signed_root(X: Features) -> Features:
    if isinstance(X, np.ndarray):
        return np.sign(X) * np.sqrt(np.abs(X))
    return X.sign().multiply(abs(X).sqrt())


def _choose(model: Pipeline, task: Task, X: Features, S: CandidateSets | Labels) -> Values:
    """Set the parameters, and the scaling if it is open, that inner folds choose."""
    scalers = _scalers(X)
    choices = {f"method__{name}": values for name, values in task.grid.items()}
    if task.scaling == "auto":
        choices["scale"] = list(scalers.values())
    best = {name: values[0] for name, values in choices.items()}
    if any(len(values) > 1 for values in choices.values()):
        selection = task.selection
        assert selection is not None
        search = GridSearchCV(
            model,
            choices,
            scoring=getattr(metrics, f"{selection.scoring}_scorer"),
            cv=KFold(selection.folds, shuffle=True, random_state=selection.seed),
            refit=False,
            error_score="raise",
        )
        best = search.fit(X, S).best_params_
    model.set_params(**best)
    chosen = {name: best[f"method__{name}"] for name in task.grid}
    if "scale" in best:
        chosen["scaling"] = next(name for name in scalers if scalers[name] is best["scale"])
    return chosen


# -- metrics -------------------------------------------------------------------------------


def metrics_of(
    model: Pipeline, trained: TaskData, tested: TaskData, *, knew_truth: bool = False
) -> dict[str, float]:
    """Return the metrics of a fitted model, by name; those without a meaning for it are left out.

    Parameters
    ----------
    model : fitted pipeline
        Its last step is the method.
    trained : TaskData
        The training part, with the truth.
    tested : TaskData
        The test part.
    knew_truth : bool, default=False
        Whether the method was fitted to the true labels.

    Returns
    -------
    dict
    """
    y, predicted = tested.y, np.asarray(model.predict(tested.X))
    macro: dict[str, Any] = {"average": "macro", "labels": np.unique(y), "zero_division": 0}
    found = {
        "accuracy": np.mean(y == predicted),
        "balanced_accuracy": recall_score(y, predicted, **macro),
        "covering_rate": metrics.covering_rate(tested.S, predicted),
        "approximated_accuracy": metrics.approximated_accuracy_scorer(model, tested.X, tested.S),
        "mean_confidence": model.predict_proba(tested.X).max(axis=1).mean(),
    }
    if tested.ordered:  # numeric labels, such as ages, may be nearly right
        found["within_three"] = np.mean(np.abs(y - predicted) <= 3)
    if not knew_truth:
        found["transductive_accuracy"] = metrics.transductive_accuracy(trained.y, model)
        ambiguous = np.flatnonzero(trained.S.sizes > 1)
        if len(ambiguous):
            confidences = model[-1].label_distributions_[ambiguous].toarray()
            right = model[-1].classes_[confidences.argmax(axis=1)] == trained.y[ambiguous]
            error = metrics.expected_calibration_error(confidences.max(axis=1), right)
            found["calibration_error"] = error
    return {name: float(value) for name, value in found.items()}
