"""The two-class models that the methods of this package are built from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.parallel import Parallel, delayed

from skpll._examples import Features
from skpll._parameters import NON_NEGATIVE, POSITIVE
from skpll._typing import Constraints, Floats
from skpll.base import ScoringClassifier
from skpll.engine.arrays import as_dense
from skpll.solvers.conditioning import Conditioning, condition
from skpll.solvers.support_vectors import SupportVectors, fit_support_vectors

KERNELS = frozenset({"linear", "poly", "rbf", "sigmoid"})

Sides: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""The examples on the positive side of a two-class problem, and those on the negative side."""

MAX_PREDICTION_ENTRIES = 2**24
"""Kernel values that are computed at a time to predict."""

MAX_FIT_ENTRIES = 2**19
"""Kernel values that are computed at a time to fit."""

MAX_KERNEL_ENTRIES = 2**27
"""A kernel matrix of all examples has at most this number of entries."""


@dataclass(eq=False, repr=False, kw_only=True)
class BinaryDecomposition(ScoringClassifier):
    """Base class of the methods that add up the answers of many two-class models."""

    accepts_sparse = True

    _parameter_constraints: ClassVar[Constraints] = {
        "C": [POSITIVE],
        "kernel": [StrOptions(set(KERNELS))],
        "gamma": [StrOptions({"scale", "auto"}), NON_NEGATIVE],
        "estimator": [HasMethods(["fit", "decision_function"]), None],
        "n_jobs": [Integral, None],
    }

    C: float = 10.0
    kernel: str = "rbf"
    gamma: str | float = "scale"
    estimator: BaseEstimator | None = None
    n_jobs: int | None = None

    def _learn_offset(self, X: Features) -> Features:
        """Keep the offset of columns that are far from zero; return the features without it.

        The support vector machines then see the digits that matter. Their answers don't depend on
        an offset otherwise; those of other models may.
        """
        self._offset = condition(X).offset if self.estimator is None else None
        return self._without_offset(X)

    def _without_offset(self, X: Features) -> Features:
        return Conditioning(self._offset)(X)

    def _model(self, X: Features) -> BaseEstimator:
        """Return the two-class classifier that is copied for every problem on the features `X`."""
        if self.estimator is not None:
            return self.estimator
        return SVC(C=self.C, kernel=self.kernel, gamma=_kernel_width(X, self.gamma))


def _kernel_width(X: Features, gamma: str | float) -> str | float:
    """Return the width that fits the scale of all examples, not of those of one problem."""
    if gamma != "scale":
        return gamma
    variance = X.multiply(X).mean() - X.mean() ** 2 if hasattr(X, "multiply") else X.var()
    return 1 / (X.shape[1] * variance) if variance > 0 else 1.0


def _kernel_of(model: SVC, n_features: int) -> dict[str, Any]:
    """Return the kernel of a support vector machine as parameters of `pairwise_kernels`."""
    gamma = 1 / n_features if model.gamma == "auto" else model.gamma
    parameters = {"gamma": gamma, "degree": model.degree, "coef0": model.coef0}
    return {"metric": model.kernel, "filter_params": True, **parameters}


@dataclass(frozen=True)
class KernelMachines:
    r"""Two-class support vector machines, with outputs :math:`\sum_i \alpha_i k(x_i, x) + b`.

    Those of several machines with the same kernel are computed together.

    Parameters
    ----------
    support : array or CSR matrix of shape (m, d)
        The rows :math:`x_i`: the support vectors of all machines.
    dual : array of shape (m,), or array or CSC matrix of shape (m, L)
        The coefficients α; zero for rows that are support vectors of other machines only.
    intercept : float or array of shape (L,)
        The intercept b.
    kernel : dict
        The kernel k, as parameters of `pairwise_kernels`.
    """

    support: Features
    dual: Features
    intercept: float | Floats
    kernel: dict[str, Any]

    def decision_function(self, X: Features) -> Floats:
        """Compute the outputs for rows of features, (n,) or (n, L); positive for that side."""
        blocks = gen_batches(X.shape[0], max(1, MAX_PREDICTION_ENTRIES // self.support.shape[0]))
        answers = [
            pairwise_kernels(X[rows], self.support, **self.kernel) @ self.dual for rows in blocks
        ]
        return np.concatenate(answers) + self.intercept


Model: TypeAlias = BaseEstimator | KernelMachines | None
"""A fitted model; None if one side of its problem is empty."""


@dataclass(frozen=True)
class Models:
    """Fitted models that predict together.

    Parameters
    ----------
    estimators : list of L models
        The models.
    n_jobs : int, optional
        Number of models that predict in parallel.
    machines : KernelMachines, optional
        All models, where they are support vector machines with the same kernel.
    """

    estimators: list[Model]
    n_jobs: int | None
    machines: KernelMachines | None = None

    def outputs(self, X: Features) -> Floats:
        """Compute the output of each model for each row of `X`, (n, L); zero for None."""
        if self.machines is not None:
            return self.machines.decision_function(X)
        run = Parallel(n_jobs=self.n_jobs, prefer=_workers(self.estimators))
        return np.column_stack(run(delayed(_output)(model, X) for model in self.estimators))


def fit_models_on_one_kernel(
    model: BaseEstimator, X: Features, problems: Iterable[Sides], n_jobs: int | None
) -> Models:
    """Do what `fit_models` does, with one kernel matrix for all problems where that is possible.

    It is for support vector machines with the RBF kernel on dense features, if the matrix takes no
    more than half a gigabyte, and is faster if problems have many examples in common. Other models
    are left to `fit_models`.
    """
    is_small = not sparse.issparse(X) and X.shape[0] ** 2 <= MAX_KERNEL_ENTRIES
    if not (is_small and _has_one_kernel(model) and _is_plain(model)):
        return fit_models(model, X, problems, n_jobs)
    kernel = _kernel_of(model, X.shape[1])
    K = np.empty((len(X), len(X)), dtype=np.float32)  # the precision of LIBSVM
    for rows in gen_batches(len(X), max(1, MAX_FIT_ENTRIES // len(X))):
        K[rows] = pairwise_kernels(X[rows], X, **kernel)
    run = Parallel(n_jobs=n_jobs, prefer="threads")
    fits = run(delayed(_fit_on_kernel)(K, sides, model.C, model.tol) for sides in problems)
    duals = np.column_stack([fit.dual for fit in fits])
    intercepts = np.array([fit.intercept for fit in fits])
    own = duals.any(axis=1)
    support, duals = X[own].astype(np.float64, copy=False), np.ascontiguousarray(duals[own])
    estimators: list[Model] = [
        KernelMachines(support, dual, float(b), kernel) if dual.any() else None
        for dual, b in zip(duals.T, intercepts, strict=True)
    ]
    return Models(estimators, n_jobs, KernelMachines(support, duals, intercepts, kernel))


def fit_models(
    model: BaseEstimator, X: Features, problems: Iterable[Sides], n_jobs: int | None
) -> Models:
    """Fit a copy of the model to every two-class problem.

    Parameters
    ----------
    model : classifier with a `decision_function`
        The model to copy; it is not fitted itself.
    X : array or sparse matrix of shape (n, d)
        The features of all examples.
    problems : iterable of (positive, negative)
        The examples on each side, as masks of shape (n,); the others are left out.
    n_jobs : int, optional
        Number of parallel fits. The result does not depend on it.

    Returns
    -------
    models : Models
        In the order of the problems.
    """
    run = Parallel(n_jobs=n_jobs, prefer=_workers([model]))
    fits = run(delayed(_fit)(model, X, *sides) for sides in problems)
    fitted = [one for one, _ in fits]
    if not (_has_one_kernel(model) and any(one is not None for one in fitted)):
        return Models(fitted, n_jobs)
    own = [rows if one is None else rows[one.support_] for one, rows in fits]
    support, places = np.unique(np.concatenate(own), return_inverse=True)
    coefficients = [[] if one is None else as_dense(one.dual_coef_).ravel() for one in fitted]
    starts = np.cumsum([0, *map(len, own)])
    dual = sparse.csc_array(
        (np.concatenate(coefficients), places, starts), shape=(len(support), len(fits))
    )
    intercepts = np.array([0.0 if one is None else one.intercept_[0] for one in fitted])
    kernel = _kernel_of(model, X.shape[1])
    return Models(fitted, n_jobs, KernelMachines(X[support], dual, intercepts, kernel))


def _workers(models: Sequence[Model]) -> Literal["threads", "processes"]:
    """Return threads for LIBSVM, which releases the interpreter lock; processes for others."""
    in_threads = all(model is None or isinstance(model, SVC) for model in models)
    return "threads" if in_threads else "processes"


def _has_one_kernel(model: BaseEstimator) -> bool:
    """Return True if all copies have the same kernel; "scale" depends on the examples."""
    return type(model) is SVC and model.kernel in KERNELS and model.gamma != "scale"


def _is_plain(model: SVC) -> bool:
    """Return True if only the penalty, the width and the tolerance differ from the defaults."""
    asked = {**model.get_params(), "C": 1.0, "gamma": "scale", "tol": 1e-3, "cache_size": 200}
    return asked == SVC().get_params()


def _fit_on_kernel(K: NDArray[np.float32], sides: Sides, C: float, tol: float) -> SupportVectors:
    positive, negative = sides
    if not (positive.any() and negative.any()):
        return SupportVectors(np.zeros(len(K)), 0.0)
    return fit_support_vectors(K, positive.astype(np.float64) - negative, C, tol=tol)


def _fit(
    model: BaseEstimator, X: Features, positive: NDArray[np.bool_], negative: NDArray[np.bool_]
) -> tuple[BaseEstimator | None, NDArray[np.intp]]:
    """Fit a model; return it with the rows that it was fitted to."""
    if not (positive.any() and negative.any()):
        return None, np.zeros(0, dtype=np.intp)
    rows = np.flatnonzero(positive | negative)
    return clone(model).fit(X[rows], positive[rows].astype(np.int64)), rows


def _output(model: Model, X: Features) -> Floats:
    if model is None:
        return np.zeros(X.shape[0])
    return np.asarray(model.decision_function(X), dtype=np.float64)
