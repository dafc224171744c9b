"""PL-SVM: the best candidate outscores every other label by a margin."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms

from skpll._examples import Examples, Features
from skpll._iteration import Iterative, Record
from skpll._parameters import COUNT, POSITIVE
from skpll._progress import progress, warn_of_long_fit
from skpll._typing import Constraints, Floats
from skpll.candidates import CandidateSets
from skpll.solvers.dual_newton import LinearSolution
from skpll.solvers.partial_margin import (
    PartialMarginLoss,
    fit_partial_margin,
    partial_margin_loss,
)

from .clpl import LinearSolutionClassifier

__all__ = ["PLSVM"]

Descent: TypeAlias = tuple[LinearSolution, list[Record], bool]
"""A model, the record of each convex problem, and whether little was gained by the last one."""

TEMPERATURES = (1.0, 0.5, 0.25, 0.125)

START_ACCURACY = 100.0
"""Models to start from are trained to a gap of at most this many times `solver_tol`. It is smaller
where the regularization is strong: such problems are solved soon."""

MAX_START_PRODUCT = 10.0
"""They have no weights whose product with the mean squared length of the examples is larger. Very
large ones make the problem slow to solve, and matter little."""

FINAL_GAP = 1e-14
FINAL_STEPS = 20
MAX_FINAL_PRODUCTS = 2**18
"""The last model is trained to `FINAL_GAP` in at most `FINAL_STEPS`, if the problem has no more
than this number of examples times features times classes."""

SECONDS_PER_PRODUCT = 1e-8
"""Time of a fit, divided by the number of examples times features times squared classes."""


@dataclass(eq=False, repr=False)
class PLSVM(LinearSolutionClassifier):
    r"""Support vector machine for partial labels (PL-SVM).

    Use it for a linear model without a prior, where candidates don't show the class sizes.

    Every class has a linear score :math:`s_p(x) = w_p^\top x + b_p`. The best candidate of each
    example should outscore all labels outside its candidate set by one:

    .. math:: &\min_W \; F(W) = \frac{\lambda}{2} \|W\|^2 + \frac{1}{\sum_i c_i} \sum_i c_i \\
              &\quad \max\Bigl(0,\; 1 - \max_{p \in S_i} s_p(x_i)
              + \max_{p \notin S_i} s_p(x_i)\Bigr)

    with sample weights :math:`c_i`. An example whose candidates are all the labels has no loss. The
    prediction is the label with the largest score.

    The problem is not convex, because the best candidate is not known beforehand. With the best
    candidates of the current model in its place, it becomes a convex upper bound of :math:`F`
    that touches it; minimizing the bound and updating the best candidates in turn (the
    concave-convex procedure) never increases :math:`F`. It stops when :math:`F` falls by less than
    `tol`, at a model that nearly minimizes its own bound, as the duality gap certifies: nearly a
    stationary point of :math:`F`, though not the best of all. The start matters, so there are two:
    the model for which all candidates count equally (by their evidence, if they have any), which is
    a convex problem, and the model that is found from it by annealing, where candidates count
    according to the softmax of their scores at falling temperatures. Evidence (weights of the
    candidates) matters for nothing but this start.

    Parameters
    ----------
    alpha : float, default=0.01
        The weight of the regularization, λ in the formula; the literature chooses it from 0.001, …,
        1000.
    <<fit_intercept>>
    n_init : int, default=2
        Number of starts, of which the one with the lowest objective is kept. From the third on,
        they begin with the candidates that random weights score best.
    tol : float, default=1e-4
        Stop when the objective falls by less than `tol` times its value.
    solver_tol : float, default=1e-3
        Each convex problem is solved until its duality gap is at most `solver_tol` times its
        objective. The last one is then solved as exactly as a few more steps allow.
    max_iter : int, default=100
        Largest number of convex problems after each start.
    random_state : int, RandomState or None, default=0
        Seed of the random starts; of no effect if `n_init` is at most 2.
    <<verbose>>
    lam : float, optional
        The old name of `alpha`.

        .. deprecated:: 0.2
           Use `alpha`; `lam` will be removed in version 0.3.

    <<Attributes: linear.found>>
    objective_ : float
        The value of :math:`F`.
    n_iter_ : int
        Number of convex problems solved after the start that was kept.
    history_ : list of dict
        For each of them the ``objective`` :math:`F` after it, its relative duality ``gap``, and
        ``label_changes``, the number of examples whose best candidate it replaced.
    <<n_features_in_, feature_names_in_>>

    Notes
    -----
    The time grows with the square of the number of classes; a fit that may take more than a minute
    says so before it starts.

    The constraint :math:`\|W\| \le 1 / \sqrt\lambda` of the original algorithm holds by itself at
    the minimum of every convex bound, intercepts included, and need not be imposed.

    The intercepts are regularized like the weights. If there are intercepts, dense columns whose
    distance from zero is more than ten times their range are moved to zero for training.

    References
    ----------
    N. Nguyen, R. Caruana: Classification with partial labels. KDD 2008.

    A. L. Yuille, A. Rangarajan: The concave-convex procedure. Neural Computation 15(4), 2003.

    Examples
    --------
    >>> from skpll import PLSVM
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> S = [{"a"}, {"a", "b"}, {"a", "c"}, {"b"}, {"b", "c"}, {"b", "c"}]
    >>> model = PLSVM().fit(X, S)
    >>> model.predict([[0.05], [1.05]]).tolist()
    ['a', 'b']
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "alpha": [POSITIVE],
        "fit_intercept": ["boolean"],
        "n_init": [COUNT],
        "solver_tol": [POSITIVE],
        "random_state": ["random_state"],
        **Iterative.parameter_constraints,
        "lam": [POSITIVE, None],
    }

    alpha: float = 0.01
    _: KW_ONLY
    fit_intercept: bool = True
    n_init: int = 2
    tol: float = 1e-4
    solver_tol: float = 1e-3
    max_iter: int = 100
    random_state: int | np.random.RandomState | None = 0
    verbose: int = 0
    lam: float | None = None

    def _solve(self, examples: Examples) -> LinearSolution:
        X, sets, weights = examples.X, examples.sets, examples.weights
        (n, q), d = sets.shape, X.shape[1]
        seconds = n * q**2 * d * SECONDS_PER_PRODUCT
        warn_of_long_fit(
            seconds,
            f"PLSVM: {n} examples of {q} classes with {d} features may take of the order of "
            f"{seconds / 60:.1f} minutes on one core. CLPL takes about a tenth of that.",
            stacklevel=5,
        )
        problem = _Problem(X, sets, weights / weights.sum(), self._alpha(), self.fit_intercept)
        descents = (self._descend(problem, start) for start in self._starts(problem))
        best, self.history_, settled = min(
            descents, key=lambda descent: descent[1][-1]["objective"]
        )
        if not settled:
            warnings.warn(
                "The objective was still falling after max_iter convex problems. Increase max_iter "
                "or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self.n_iter_ = len(self.history_)
        best = problem.polished(best, self.solver_tol)
        self.objective_ = problem.objective(best)
        if not best.gap <= self.solver_tol * best.objective:
            warnings.warn(
                "The duality gap of the last convex problem is still "
                f"{best.gap / best.objective:.2g} of its objective. Increase solver_tol, or scale "
                "the features.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return best

    def _alpha(self) -> float:
        if self.lam is None:
            return self.alpha
        warnings.warn(
            "lam: is called alpha now; the old name will be removed in version 0.3.",
            FutureWarning,
            stacklevel=6,
        )
        return self.lam

    def _starts(self, problem: _Problem) -> Iterator[LinearSolution]:
        """Yield the even model, the annealed one, then models for randomly chosen candidates."""
        product = problem.weight_product()
        roughly = START_ACCURACY * self.solver_tol * min(1.0, product)
        if product > MAX_START_PRODUCT:
            problem = problem._replace(alpha=problem.alpha * product / MAX_START_PRODUCT)
        model = problem.minimize(problem.candidates.initial_confidences(), None, roughly)
        yield model
        if self.n_init == 1:
            return
        for temperature in TEMPERATURES:
            model = problem.minimize(problem.soft_targets(model, temperature), model, roughly)
        yield model
        random = check_random_state(self.random_state)
        for _ in range(self.n_init - 2):
            direction = random.normal(size=(problem.X.shape[1], problem.candidates.shape[1]))
            targets = problem.best_candidates(np.asarray(problem.X @ direction))
            yield problem.minimize(targets, None, roughly)

    def _descend(self, problem: _Problem, model: LinearSolution) -> Descent:
        """Minimize the bound and update the best candidates in turn, until little is gained."""
        objective = problem.objective(model)
        targets = problem.best_candidates(model.scores)
        history: list[Record] = []
        with progress("PL-SVM", self.max_iter, bool(self.verbose)) as step:
            for turn in range(1, self.max_iter + 1):
                model = problem.improved(model, targets, self.solver_tol)
                before, objective = objective, problem.objective(model)
                targets_before, targets = targets, problem.best_candidates(model.scores)
                history.append(
                    {
                        "objective": objective,
                        "gap": model.gap / model.objective if model.objective else 0.0,
                        "label_changes": int(np.sum(targets > targets_before)),
                    }
                )
                step(turn, f"objective {objective:.6g}")
                if before - objective <= self.tol * before:
                    return model, history, True
        return model, history, False


class _Problem(NamedTuple):
    """The objective of PL-SVM, and its convex bounds."""

    X: Features
    candidates: CandidateSets
    weights: Floats
    alpha: float
    fit_intercept: bool

    def weight_product(self) -> float:
        """Return the largest weight of a loss times the mean squared length of the examples."""
        lengths = row_norms(self.X, squared=True)
        return float(lengths.mean() * self.weights.max() / self.alpha)

    def objective(self, model: LinearSolution) -> float:
        squared_norm = np.vdot(model.coef, model.coef) + np.vdot(model.intercept, model.intercept)
        return 0.5 * self.alpha * float(squared_norm) + partial_margin_loss(
            model.scores, self.candidates.indptr, self.candidates.indices, self.weights
        )

    def minimize(
        self, targets: Floats, state: LinearSolution | None, tol: float, max_iter: int = 1000
    ) -> LinearSolution:
        """Minimize the bound in which the targets stand for the best candidates."""
        sets = self.candidates
        return fit_partial_margin(
            self.X,
            PartialMarginLoss(sets.indptr, sets.indices, targets, self.weights / self.alpha),
            sets.shape[1],
            fit_intercept=self.fit_intercept,
            state=state,
            tol=tol,
            max_iter=max_iter,
        )

    def improved(self, model: LinearSolution, targets: Floats, tol: float) -> LinearSolution:
        """Minimize the bound for the targets; more exactly if the result is no better.

        The bound touches the objective at the model, so that a lower bound is a lower objective;
        only a solution that is not exact enough can be worse.
        """
        before = self.objective(model)
        update = model
        for accuracy in (tol, tol / 10):
            update = self.minimize(targets, update, accuracy)
            if self.objective(update) < before:
                return update
        optimum = update.objective - update.gap
        gap = max(before / self.alpha - optimum, 0.0)
        return replace(model, objective=before / self.alpha, gap=gap)

    def polished(self, model: LinearSolution, tol: float) -> LinearSolution:
        """Minimize the bound at the model almost exactly, where that takes no time."""
        if self.X.shape[0] * self.X.shape[1] * self.candidates.shape[1] > MAX_FINAL_PRODUCTS:
            return model
        targets = self.best_candidates(model.scores)
        exact = self.minimize(targets, model, FINAL_GAP, FINAL_STEPS)
        if exact.gap > tol * exact.objective:
            exact = self.minimize(targets, exact, tol)
        return exact if self.objective(exact) <= self.objective(model) else model

    def soft_targets(self, model: LinearSolution, temperature: float) -> Floats:
        scores = self.candidates.entries(model.scores) / temperature
        return self.candidates.row_softmax(scores)

    def best_candidates(self, scores: Floats) -> Floats:
        targets = np.zeros(len(self.candidates.indices))
        targets[self.candidates.row_argmax(self.candidates.entries(scores))] = 1.0
        return targets
