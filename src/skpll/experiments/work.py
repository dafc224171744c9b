"""What a task does: scale, choose parameters, fit, measure.

Everything that is learned, is learned from the training part: the scaling, the width of kernel
features, and the parameters, which inner folds choose by candidate sets alone. The truth enters
only when the result is measured; only a method that says so (``uses_truth``) is told it.
"""

from __future__ import annotations

import time
import warnings
from typing import Any, TypedDict

import numpy as np
from scipy import sparse

from .data import TaskData, divide, prepare_data
from .tasks import Task, make_method

__all__ = ["Measurement", "measure", "run_task"]


class Measurement(TypedDict):
    """What is kept of a task: a row of the store."""

    metrics: dict[str, float]
    chosen: dict[str, Any]
    seconds: float
    fit_seconds: float
    n_train: int
    n_test: int
    trace: list[dict[str, Any]] | None


_SEED = 0  # of methods and features that are random and are not given a seed


def run_task(task: Task, folder: str) -> Measurement:
    """Do a task.

    Parameters
    ----------
    task : Task
        The task.
    folder : str
        Where prepared data are shared.

    Returns
    -------
    dict
        What `measure` gives.
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
        ``seconds`` (of all), ``fit_seconds`` (of the final fit), ``n_train``, ``n_test`` and
        ``trace`` (a list of records, or None).
    """
    from .measures import Outcome, measured
    from .trace import TruthMonitor

    start = time.perf_counter()
    train, test = divide(len(data.y), task.split)
    X, S, y = data.X[train], data.S[train], data.y[train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _model(task, X)
        told = y if getattr(model[-1], "uses_truth", False) else S
        chosen = _choose(model, task, X, told)
        monitor = TruthMonitor(y)
        if task.trace and hasattr(model[-1], "set_callbacks"):
            model[-1].set_callbacks(monitor)
        begin = time.perf_counter()
        model.fit(X, told)
        fit_seconds = time.perf_counter() - begin
        tested = TaskData(data.X[test], data.S[test], data.y[test], data.ordered)
        metrics = measured(Outcome(model, TaskData(X, S, y), tested))
    stages = monitor.records or getattr(model[-1], "history_", None)
    return {
        "metrics": metrics,
        "chosen": chosen,
        "seconds": time.perf_counter() - start,
        "fit_seconds": fit_seconds,
        "n_train": len(train),
        "n_test": len(test),
        "trace": stages if task.trace else None,
    }


def _model(task: Task, X: Any) -> Any:
    """Put scaling, features and method together."""
    from sklearn.pipeline import Pipeline

    steps: list[tuple[str, Any]] = [("scale", _scalers(X).get(task.scaling))]
    if task.features:
        from .features import MedianNystroem

        count = task.features["nystroem"]
        steps.append(("features", MedianNystroem(count, random_state=_SEED)))
    method = make_method(task.method, task.parameters)
    if method.get_params().get("random_state", _SEED) is None:
        method.set_params(random_state=_SEED)
    return Pipeline([*steps, ("method", method)])


def _scalers(X: Any) -> dict[str, Any]:
    """Make a transformer for each way of scaling; None leaves the features as they are.

    Zeros of sparse features stay zeros: their range is counted from there.
    """
    from sklearn import preprocessing as scale

    return {
        "zscore": scale.StandardScaler(with_mean=not sparse.issparse(X)),
        "minmax": scale.MaxAbsScaler() if sparse.issparse(X) else scale.MinMaxScaler(),
        "none": None,
        "sqrt": scale.FunctionTransformer(_signed_root),
    }


def _signed_root(X: Any) -> Any:
    if hasattr(X, "multiply"):  # sparse
        return X.sign().multiply(abs(X).sqrt())
    return np.sign(X) * np.sqrt(np.abs(X))


def _choose(model: Any, task: Task, X: Any, S: Any) -> dict[str, Any]:
    """Choose parameters, and the scaling if it is open, by inner folds without the truth.

    The model is given what was chosen.
    """
    from sklearn.model_selection import GridSearchCV, KFold

    from skpll import metrics

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
