"""PL-LEAF: confidences that are smooth among neighbours, then a regression on them."""

from __future__ import annotations

import os
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import StrOptions

from skpll._examples import Examples, Features
from skpll._iteration import Iterative
from skpll._parameters import NON_NEGATIVE, POSITIVE
from skpll._progress import progress, warn_of_long_fit
from skpll._threads import threads_for
from skpll._typing import Constraints, Floats
from skpll.base import ScoringClassifier
from skpll.candidates import CandidateSets
from skpll.engine.kernels import KernelMap, squared_distances
from skpll.solvers.label_smoothing import neighbor_graph, smooth_labels
from skpll.solvers.multi_output_svr import FeatureModel, KernelModel, fit_multi_output_svr
from skpll.solvers.reconstruction import reconstruction_weights

from .graph import NeighborMethod

SECONDS_PER_CUBE = 5e-11
"""Measured time of the regression on a kernel, divided by the cube of the number of examples."""


@dataclass(eq=False, repr=False)
class PLLEAF(NeighborMethod, ScoringClassifier):
    r"""Partial-label learning by feature-aware disambiguation (PL-LEAF).

    Use it with few features or kernels, for classes of any shape, with no time to tune.

    First, confidences in the candidates are made to follow the geometry of the features. With the
    rows of `X` brought to length one, every example is reconstructed from its :math:`k` nearest
    neighbours by weights :math:`w_{ij} \ge 0` that sum to one, and the confidences are to be
    reconstructed by the same weights:

    .. math:: &\min_F \sum_i \Bigl\|F_i - \sum_j w_{ij} F_j\Bigr\|^2 \\
              &\text{s.t.}\quad F_{il} \ge 0,\ \sum_{l \in S_i} F_{il} = 1, \\
              &\qquad\; F_{il} = 0 \text{ for } l \notin S_i.

    Where candidates carry evidence :math:`E`, confidences that sum to one as well, a second term
    :math:`\sum_i \|F_i - E_i\|^2` asks to stay near it. Then a support vector regression :math:`f`
    with one output for each label, in the space of the kernel
    :math:`\exp(-\gamma \|x - z\|^2)`, learns the confidences, and is rewarded for outputs that are
    higher on the candidates than elsewhere:

    .. math:: &\min_f \tfrac12 \|f\|^2 + C_1 \sum_i \max(0, \|F_i - f(x_i)\| - \varepsilon)^2 \\
              &\quad - C_2 \sum_i \Bigl[\operatorname*{mean}_{l \in S_i} f_l(x_i)
              - \operatorname*{mean}_{l \notin S_i} f_l(x_i)\Bigr].

    The label with the largest output wins. An example that has every label as a candidate gets no
    reward.

    Features should have comparable scales: ``make_pipeline(StandardScaler(), PLLEAF())``. With the
    RBF kernel, fitting takes memory of the order of the square of the number of examples, and time
    between its square and its cube, which is announced where it is long; for many examples use
    ``make_pipeline(StandardScaler(), Nystroem(), PLLEAF(kernel="linear"))``.

    <<Parameters: n_neighbors>>
    C1 : float, default=10.0
        The weight of the errors of the regression.
    C2 : float, default=1.0
        The weight of the reward for telling candidates from other labels.
    epsilon : float, default=0.1
        Errors that are not longer cost nothing.
    kernel : {"rbf", "linear"}, default="rbf"
        The kernel of the regression.
    gamma : float, optional
        The coefficient of the RBF kernel; by default :math:`1 / (2 \sigma^2)` where :math:`\sigma`
        is the mean distance between two training examples.
    max_iter : int, default=1000
        Largest number of iterations of each of the two optimizations.
    tol : float, default=1e-6
        Confidences are optimized until the duality gap, the regression until the decrease of the
        objective is below this share of the objective at the start.
    <<search, n_jobs>>
    verbose : int, default=0
        Whether to show progress bars.

    <<Attributes: classes_, transduction_>>
    label_distributions_ : sparse array of shape (n, q)
        The confidences F.
    n_iter_ : int
        Number of iterations of the regression.
    history_ : list of dict
        A record of each iteration: its ``phase`` (``"confidences"`` or ``"regression"``) and the
        ``objective``, which never rises within a phase.
    gamma_ : float or None
        The coefficient of the RBF kernel, where there is one.
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    M.-L. Zhang, B.-B. Zhou, X.-Y. Liu: Partial label learning via feature-aware disambiguation.
    ACM SIGKDD International Conference on Knowledge Discovery and Data Mining, 2016.

    Examples
    --------
    >>> from skpll import PLLEAF
    >>> from skpll.datasets import load_dataset, make_partial_labels
    >>> X, _, y = load_dataset("iris", return_X_S_y=True)
    >>> S = make_partial_labels(y, p=0.8, r=1, random_state=0)
    >>> bool(PLLEAF().fit(X, S).score(X, y) > 0.9)
    True
    """

    accepts_sparse = True

    _parameter_constraints: ClassVar[Constraints] = {
        "C1": [POSITIVE],
        "C2": [NON_NEGATIVE],
        "epsilon": [NON_NEGATIVE],
        "kernel": [StrOptions({"rbf", "linear"})],
        "gamma": [POSITIVE, None],
        **NeighborMethod._parameter_constraints,
        **Iterative.parameter_constraints,
    }

    _: KW_ONLY
    C1: float = 10.0
    C2: float = 1.0
    epsilon: float = 0.1
    kernel: str = "rbf"
    gamma: float | None = None
    max_iter: int = 1000
    tol: float = 1e-6
    verbose: int = 0

    def _fit(self, examples: Examples) -> Floats:
        X, candidates = examples.X, examples.sets
        if self.kernel == "rbf":
            _announce(X.shape[0])
        X = X.astype(np.float64, copy=False)
        self.history_: list[dict[str, object]] = []
        confidences = self._smooth(normalize(X), candidates)
        targets = candidates.to_matrix(confidences).toarray()
        pull = self.C2 * _contrast(np.asarray(candidates) > 0)
        with threads_for(X.shape[0] ** 3 if self.kernel == "rbf" else X.size * len(self._seen)):
            self._regress(X, targets, pull)
        return confidences

    def _smooth(self, X: Features, candidates: CandidateSets) -> Floats:
        _, neighbors = self._find_neighbors(X)
        weights = reconstruction_weights(X, X, neighbors, sum_to_one=True)
        with progress("PL-LEAF confidences", self.max_iter, bool(self.verbose)) as step:
            result = smooth_labels(
                neighbor_graph(neighbors, weights),
                candidates.indptr,
                candidates.indices,
                None if candidates.weights is None else candidates.initial_confidences(),
                tol=self.tol,
                max_iter=self.max_iter,
                report=lambda iteration, gap: step(iteration, f"duality gap {gap:.2e}"),
            )
        self._record("confidences", result.objective, result.converged)
        return result.values

    def _regress(self, X: Features, targets: Floats, pull: Floats) -> None:
        with progress("PL-LEAF regression", self.max_iter, bool(self.verbose)) as step:
            result = fit_multi_output_svr(
                self._model(X),
                targets,
                pull,
                C=self.C1,
                epsilon=self.epsilon,
                tol=self.tol,
                max_iter=self.max_iter,
                report=lambda iteration, value: step(iteration, f"objective {value:.6g}"),
            )
        self._coef, self._intercept = result.coef, result.intercept
        self.n_iter_ = len(result.objective) - 1
        self._record("regression", result.objective, result.converged)

    def _model(self, X: Features) -> FeatureModel | KernelModel:
        if self.kernel == "linear":
            self.gamma_: float | None = None
            return FeatureModel(X)
        distances = squared_distances(X, X)
        self.gamma_ = _width_coefficient(distances) if self.gamma is None else float(self.gamma)
        self._map = KernelMap("rbf", self.gamma_, 1.0, X)
        return KernelModel(self._map.of_distances(distances))

    def _record(self, phase: str, objective: list[float], converged: bool) -> None:
        """Add the iterations of a phase to the history; warn if they were too few."""
        self.history_ += [{"phase": phase, "objective": value} for value in objective[1:]]
        if not converged:
            warnings.warn(
                f"The optimization of the {phase} did not converge in max_iter={self.max_iter} "
                "iterations; allow for more, or raise tol.",
                ConvergenceWarning,
                stacklevel=6,
            )

    def _class_scores(self, X: Features) -> Floats:
        if self.gamma_ is None:
            return np.asarray(X @ self._coef + self._intercept)
        X = X.astype(np.float64, copy=False)
        return self._map.outputs(X, self._coef, self._intercept)


def _announce(n: int) -> None:
    """Warn before a long fit, and refuse one that does not fit into memory."""
    memory, seconds = 3 * n**2 * np.dtype(float).itemsize, SECONDS_PER_CUBE * n**3
    needs = (
        f"PLLEAF: the RBF kernel of {n} examples takes {memory / 2**30:.0f} GiB and of the order "
        f"of {seconds / 60:.0f} minutes on one core. For many examples use "
        'make_pipeline(StandardScaler(), Nystroem(), PLLEAF(kernel="linear")).'
    )
    if memory > _physical_memory():
        raise MemoryError(needs)
    warn_of_long_fit(seconds, needs, stacklevel=5)


def _physical_memory() -> float:
    """Return the memory of this computer in bytes; infinity if it is unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return np.inf


def _contrast(inside: NDArray[np.bool_]) -> Floats:
    """Return the coefficients of the mean over the candidates minus that over other labels."""
    n_inside = inside.sum(axis=1, keepdims=True)
    n_outside = inside.shape[1] - n_inside
    contrast = np.where(inside, 1 / n_inside, -1 / np.maximum(n_outside, 1))
    return np.where(n_outside > 0, contrast, 0.0)


def _width_coefficient(squared_distances: Floats) -> float:
    """Return 1 / (2 σ²) for the mean distance σ of two examples; 1 if all are equal."""
    n = len(squared_distances)
    sigma = sum(float(np.sqrt(row).sum()) for row in squared_distances) / max(n * (n - 1), 1)
    return float(1 / (2 * sigma**2)) if sigma > 0 else 1.0
