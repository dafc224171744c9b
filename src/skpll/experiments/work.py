"""What a task does: prepare its data, scale, choose parameters, fit, measure.

Data are prepared once: the first process that needs a data set writes it into a folder that all
workers share; the others map the same file into their memory.

Everything is learned from the training part: the scaling, and the parameters, which inner folds
choose by candidate sets alone. The truth is used only to measure, and to fit the methods in
`skpll.experiments.tasks.USES_TRUTH`.

A metric is one function of an `Outcome` and one line in `METRICS`. Stores keep all metrics, and
frames of results have a column for each.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypedDict

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

__all__ = ["METRICS", "Measurement", "Outcome", "TaskData", "divide", "measure", "prepare_data"]
__all__ += ["run_task"]

_SEED = 0  # of random methods without a seed of their own
_SUBSET_SEED = 0
_COUPLING = 0.7  # probability of the coupled label among the false candidates of kind "pairs"

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
    from joblib import Memory

    memory = Memory(folder, mmap_mode="r", verbose=0)
    data: TaskData = memory.cache(_load)(task.dataset, task.rows)
    if task.p is None:
        return data
    names = ("dataset", "rows", "p", "r", "corruption_seed", "kind", "noise")
    wanted = {name: getattr(task, name) for name in names}
    return replace(data, S=memory.cache(_corrupt, ignore=["data"])(data, wanted))


def _load(dataset: str, rows: int | None) -> TaskData:
    """Load a data set; one without candidate sets has the truth in their place."""
    from skpll.datasets import dataset_info, load_dataset

    found = load_dataset(dataset)
    X = np.ascontiguousarray(found.X) if isinstance(found.X, np.ndarray) else found.X.tocsr()
    y = np.asarray(found.y)
    S = found.candidates
    if S is None:
        S = as_candidates(y, classes=found.classes)
    data = TaskData(X, S, y, dataset_info(dataset).ordered)
    if rows is None:
        return data
    return data.part(np.sort(np.random.RandomState(_SUBSET_SEED).permutation(len(y))[:rows]))


def _corrupt(data: TaskData, wanted: dict[str, Any]) -> CandidateSets:
    """Make candidate sets from true labels, as these attributes of a task say."""
    from skpll.datasets import make_partial_labels

    p, usual = wanted["p"], {"p": wanted["p"], "r": wanted["r"]}
    options: dict[str, dict[str, Any]] = {
        "dictionary": {"kind": "dictionary", "X": data.X, "min_share": p},
        "flip": {"kind": "flip", "q": p},
        "feature": {**usual, "kind": "feature", "X": data.X},
        "pairs": {**usual, "epsilon": _COUPLING},
    }
    asked = options.get(wanted["kind"], usual)
    asked |= {"noise": wanted["noise"], "random_state": wanted["corruption_seed"]}
    classes = data.S.classes
    S = make_partial_labels(data.y, classes=classes.tolist(), **asked)
    if wanted["kind"] != "constant":
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


class Measurement(TypedDict):
    """What is kept of a task: a row of the store."""

    metrics: dict[str, float]
    chosen: Values
    seconds: float
    fit_seconds: float
    n_train: int
    n_test: int


def run_task(task: Task, folder: str) -> Measurement:
    """Run a task.

    Parameters
    ----------
    task : Task
        The task.
    folder : str
        Where prepared data are shared.

    Returns
    -------
    Measurement
    """
    return measure(task, prepare_data(task, folder))


def measure(task: Task, data: TaskData) -> Measurement:
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
        ``metrics`` (a dict of floats), ``chosen`` (the parameters that inner folds chose),
        ``seconds`` (of the whole task), ``fit_seconds`` (of the final fit), ``n_train`` and
        ``n_test``.
    """
    start = time.perf_counter()
    train, test = (data.part(rows) for rows in divide(len(data.y), task.split))
    labels = train.y if task.method in USES_TRUTH else train.S
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _model(task, train.X)
        chosen = _choose(model, task, train.X, labels)
        begin = time.perf_counter()
        model.fit(train.X, labels)
        fit_seconds = time.perf_counter() - begin
        outcome = Outcome(model, train, test, task.method in USES_TRUTH)
        found = {name: metric(outcome) for name, metric in METRICS.items()}
    return {
        "metrics": {name: value for name, value in found.items() if value is not None},
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


@dataclass(frozen=True)
class Outcome:
    """A fitted model and its data.

    Attributes
    ----------
    model : fitted pipeline
        Its last step is the method.
    trained : TaskData
        The training part, with the truth.
    tested : TaskData
        The test part.
    knew_truth : bool
        Whether the method was fitted to the true labels.
    """

    model: Pipeline
    trained: TaskData
    tested: TaskData
    knew_truth: bool = False

    @cached_property
    def predicted(self) -> Labels:
        """The labels predicted for the test part."""
        return np.asarray(self.model.predict(self.tested.X))


def accuracy(outcome: Outcome) -> float:
    """Return the share of correct predictions."""
    return float(np.mean(outcome.tested.y == outcome.predicted))


def within_three(outcome: Outcome) -> float | None:
    """Return the share of predictions that are at most three off, for numeric labels (ages)."""
    if not outcome.tested.ordered:
        return None
    return float(np.mean(np.abs(outcome.tested.y - outcome.predicted) <= 3))


def balanced_accuracy(outcome: Outcome) -> float:
    """Return the share of correct predictions, averaged over the classes."""
    y = outcome.tested.y
    options = {"average": "macro", "labels": np.unique(y), "zero_division": 0}
    return float(recall_score(y, outcome.predicted, **options))


def transductive_accuracy(outcome: Outcome) -> float | None:
    """Return the share of training examples whose true label was found."""
    if outcome.knew_truth:
        return None
    return metrics.transductive_accuracy(outcome.trained.y, outcome.model)


def covering_rate(outcome: Outcome) -> float:
    """Return the share of predictions that are candidates."""
    return metrics.covering_rate(outcome.tested.S, outcome.predicted)


def approximated_accuracy(outcome: Outcome) -> float:
    """Return the accuracy that the model's own probabilities imply."""
    tested = outcome.tested
    return metrics.approximated_accuracy_scorer(outcome.model, tested.X, tested.S)


def mean_confidence(outcome: Outcome) -> float:
    """Return the mean probability of the predictions; it equals the accuracy if calibrated."""
    return float(outcome.model.predict_proba(outcome.tested.X).max(axis=1).mean())


def calibration_error(outcome: Outcome) -> float | None:
    """Return the calibration error of the confidences of ambiguous training examples."""
    ambiguous = outcome.trained.S.sizes > 1
    if outcome.knew_truth or not ambiguous.any():
        return None
    method = outcome.model[-1]
    confidences = method.label_distributions_[np.flatnonzero(ambiguous)].toarray()
    right = method.classes_[confidences.argmax(axis=1)] == outcome.trained.y[ambiguous]
    return metrics.expected_calibration_error(confidences.max(axis=1), right)


_METRICS = (accuracy, within_three, balanced_accuracy, transductive_accuracy, covering_rate)
METRICS: dict[str, Callable[[Outcome], float | None]] = {
    metric.__name__: metric
    for metric in (*_METRICS, approximated_accuracy, mean_confidence, calibration_error)
}
"""The metrics, by name; None is left out: the metric has no meaning for the task."""
