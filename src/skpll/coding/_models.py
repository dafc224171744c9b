"""The two-class models that the methods of this package are built from, and what asks them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed

from skpll.base import ScoringClassifier
from skpll.solvers.conditioning import condition
from skpll.solvers.support_vectors import fit_support_vectors

KERNELS = frozenset({"linear", "poly", "rbf", "sigmoid"})

Sides: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Which examples are on the positive side of a two-class problem, and which on the negative."""

Fit: TypeAlias = tuple[BaseEstimator | None, NDArray[np.intp]]
"""A fitted model and the rows that it was fitted to; none, if one of its sides is empty."""

_BLOCK_ENTRIES = 2**24
_KERNEL_BLOCK = 2**19
_LARGEST_KERNEL = 2**27


@dataclass(eq=False, repr=False, kw_only=True)
class BinaryDecomposition(ScoringClassifier):
    """Base class of the methods that ask many two-class models and add up their answers."""

    accepts_sparse = True

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions(set(KERNELS))],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="left")],
        "estimator": [HasMethods(["fit", "decision_function"]), None],
        "n_jobs": [Integral, None],
    }

    C: float = 10.0
    kernel: str = "rbf"
    gamma: str | float = "scale"
    estimator: BaseEstimator | None = None
    n_jobs: int | None = None

    def _learn_offset(self, X: Any) -> Any:
        """Keep the offset of columns that are far from zero; return the features without it.

        The support vector machines then see the digits that matter. Their answers don't depend on
        an offset otherwise; those of other models may.
        """
        self._offset = condition(X).offset if self.estimator is None else None
        return self._without_offset(X)

    def _without_offset(self, X: Any) -> Any:
        return X if self._offset is None else X - self._offset

    def _model(self, X: Any) -> BaseEstimator:
        """Give the two-class classifier that is copied for every problem on the features `X`."""
        if self.estimator is not None:
            return self.estimator
        return SVC(C=self.C, kernel=self.kernel, gamma=_kernel_width(X, self.gamma))


def _kernel_width(X: Any, gamma: str | float) -> str | float:
    """Work out the width that goes with the scale of all examples, not those of one problem."""
    if gamma != "scale":
        return gamma
    variance = X.multiply(X).mean() - X.mean() ** 2 if hasattr(X, "multiply") else X.var()
    return 1 / (X.shape[1] * variance) if variance > 0 else 1.0


@dataclass(frozen=True)
class Models:
    """Fitted models that are asked together; None stands for a problem with an empty side."""

    estimators: list[BaseEstimator | None]
    n_jobs: int | None

    def outputs(self, X: Any) -> NDArray[np.float64]:
        """Give what each model says on each row of `X`, (n, L); zero where there is none."""
        run = Parallel(n_jobs=self.n_jobs, prefer=_workers(self.estimators))
        return np.column_stack(run(delayed(_output)(model, X) for model in self.estimators))


@dataclass(frozen=True)
class KernelModels(Models):
    r"""Support vector machines with the same kernel, which is computed once for all of them.

    The output of model :math:`t` is :math:`\sum_i \alpha_{it} k(x_i, x) + b_t`, where
    :math:`\alpha_{it}` is zero unless :math:`x_i` is one of its support vectors.
    """

    support: Any
    dual: Any
    intercept: NDArray[np.float64]
    kernel: dict[str, Any]

    @classmethod
    def of(cls, fits: Sequence[Fit], X: Any, model: SVC, n_jobs: int | None) -> KernelModels:
        """Put the support vectors of all models together."""
        own = [rows if fitted is None else rows[fitted.support_] for fitted, rows in fits]
        support, places = np.unique(np.concatenate(own), return_inverse=True)
        duals = [np.zeros(0) if fitted is None else _dense(fitted.dual_coef_) for fitted, _ in fits]
        starts = np.cumsum([0, *map(len, own)])
        return cls(
            [fitted for fitted, _ in fits],
            n_jobs,
            X[support],
            sparse.csc_array(
                (np.concatenate(duals), places, starts), shape=(len(support), len(fits))
            ),
            np.array([0.0 if fitted is None else fitted.intercept_[0] for fitted, _ in fits]),
            _kernel_of(model, X.shape[1]),
        )

    def outputs(self, X: Any) -> NDArray[np.float64]:
        """Give what each model says on each row of `X`, (n, L); zero where there is none."""
        blocks = gen_batches(X.shape[0], max(1, _BLOCK_ENTRIES // self.support.shape[0]))
        answers = [
            pairwise_kernels(X[block], self.support, **self.kernel) @ self.dual for block in blocks
        ]
        return np.concatenate(answers) + self.intercept


def fit_models_on_one_kernel(
    model: BaseEstimator, X: Any, problems: Iterable[Sides], n_jobs: int | None
) -> Models:
    """Do what `fit_models` does, with one kernel matrix for all problems where that is possible.

    It is for support vector machines with the RBF kernel on dense features, if the matrix takes no
    more than half a gigabyte, and is quicker where problems have many examples in common. Other
    models are left to `fit_models`.
    """
    if not (_has_one_kernel(model) and _is_plain(model) and _is_small(X)):
        return fit_models(model, X, problems, n_jobs)
    K = _kernel_matrix(X, _kernel_of(model, X.shape[1]))
    empty = clone(model).fit(X[:1].repeat(2, axis=0), [0, 1])
    run = Parallel(n_jobs=n_jobs, prefer="threads")
    fits = run(delayed(_fit_on_kernel)(empty, X, K, *sides) for sides in problems)
    models = KernelModels.of(fits, X, model, n_jobs)
    return replace(models, dual=models.dual.toarray())  # most examples support some model


def fit_models(
    model: BaseEstimator, X: Any, problems: Iterable[Sides], n_jobs: int | None
) -> Models:
    """Fit a copy of the model to every two-class problem.

    Parameters
    ----------
    model : classifier with a `decision_function`
        What to copy; it is left as it is.
    X : array or sparse matrix of shape (n, d)
        The features of all examples.
    problems : iterable of (positive, negative)
        The examples on each side, as masks of shape (n,); the others take no part.
    n_jobs : int, optional
        Number of parallel fits. The result does not depend on it.

    Returns
    -------
    models : Models
        In the order of the problems.
    """
    run = Parallel(n_jobs=n_jobs, prefer=_workers([model]))
    fits = run(delayed(_fit)(model, X, *sides) for sides in problems)
    if _has_one_kernel(model) and any(len(rows) for _, rows in fits):
        return KernelModels.of(fits, X, model, n_jobs)
    return Models([fitted for fitted, _ in fits], n_jobs)


def _workers(models: Sequence[BaseEstimator | None]) -> str:
    """Use threads for LIBSVM, which works outside the interpreter; processes for all others."""
    in_threads = all(model is None or isinstance(model, SVC) for model in models)
    return "threads" if in_threads else "processes"


def _has_one_kernel(model: BaseEstimator) -> bool:
    """Whether all copies use the same kernel; the width "scale" depends on the examples."""
    return type(model) is SVC and model.kernel in KERNELS and model.gamma != "scale"


def _is_plain(model: SVC) -> bool:
    """Whether nothing but the penalty, the width and the tolerance differs from the defaults."""
    asked = {**model.get_params(), "C": 1.0, "gamma": "scale", "tol": 1e-3, "cache_size": 200}
    return asked == SVC().get_params()


def _is_small(X: Any) -> bool:
    return not sparse.issparse(X) and X.shape[0] ** 2 <= _LARGEST_KERNEL


def _kernel_of(model: SVC, n_features: int) -> dict[str, Any]:
    return {
        "metric": model.kernel,
        "gamma": 1 / n_features if model.gamma == "auto" else model.gamma,
        "degree": model.degree,
        "coef0": model.coef0,
        "filter_params": True,
    }


def _kernel_matrix(X: Any, kernel: dict[str, Any]) -> NDArray[np.float32]:
    """Compute the kernel in single precision, as LIBSVM does."""
    K = np.empty((len(X), len(X)), dtype=np.float32)
    for block in gen_batches(len(X), max(1, _KERNEL_BLOCK // len(X))):
        K[block] = pairwise_kernels(X[block], X, **kernel)
    return K


def _fit_on_kernel(
    empty: SVC,
    X: Any,
    K: NDArray[np.float32],
    positive: NDArray[np.bool_],
    negative: NDArray[np.bool_],
) -> Fit:
    """Train on the kernel matrix, and give the result the form of a fitted SVC.

    What does not depend on the examples comes from an SVC that was fitted to next to nothing.
    """
    if not (positive.any() and negative.any()):
        return None, np.zeros(0, dtype=np.intp)
    signs = positive.astype(np.float64) - negative
    found = fit_support_vectors(K, signs, empty.C, tol=empty.tol)
    rows = np.flatnonzero(signs)
    dual = found.dual[rows]
    support = np.concatenate([np.flatnonzero(dual < 0), np.flatnonzero(dual > 0)])
    fitted = copy(empty)
    fitted.support_ = support.astype(np.int32)
    fitted.support_vectors_ = X[rows[support]].astype(np.float64, copy=False)
    fitted._n_support = np.array([np.sum(dual < 0), np.sum(dual > 0)], dtype=np.int32)
    fitted.dual_coef_, fitted.intercept_ = dual[np.newaxis, support], np.array([found.intercept])
    fitted._dual_coef_, fitted._intercept_ = -fitted.dual_coef_, -fitted.intercept_
    fitted.shape_fit_ = len(rows), X.shape[1]
    del fitted.n_iter_  # LIBSVM had no part in it
    return fitted, rows


def _fit(
    model: BaseEstimator, X: Any, positive: NDArray[np.bool_], negative: NDArray[np.bool_]
) -> Fit:
    if not (positive.any() and negative.any()):
        return None, np.zeros(0, dtype=np.intp)
    rows = np.flatnonzero(positive | negative)
    return clone(model).fit(X[rows], positive[rows].astype(np.int64)), rows


def _output(model: BaseEstimator | None, X: Any) -> NDArray[np.float64]:
    if model is None:
        return np.zeros(X.shape[0])
    return np.asarray(model.decision_function(X), dtype=np.float64)


def _dense(row: Any) -> NDArray[np.float64]:
    return np.ravel(row.toarray() if hasattr(row, "toarray") else row)
