r"""The alternating optimization behind M3PL and SP-PLL.

Minimized over the model :math:`W`, the labels :math:`y_i \in S_i` and the weights :math:`v_i` is

.. math:: \tfrac12 \|W\|^2 + C \sum_i v_i \max(0, 1 - \eta_i^{y_i}) + f(v, \lambda)
          \quad\text{s.t.}\quad l_p \le \#\{i : y_i = p\} \le u_p,

or, where the bounds are wishes that have a price :math:`\kappa`, with :math:`C \kappa` for every
example outside them, in rounds (stages) of growing :math:`C` and :math:`\lambda`. Inside a stage
the weights are fixed, model and labels are updated in turn, and the objective never rises.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from skpll._examples import Examples
from skpll._iteration import Record
from skpll._threads import threads_for
from skpll._typing import Floats
from skpll.pacing import Pace, Stage
from skpll.solvers.assignment import assign_labels
from skpll.solvers.crammer_singer import CrammerSingerResult, fit_crammer_singer
from skpll.solvers.margins import ScoreBlocks, candidate_margins

from ._start import Bounds

MAX_SWEEPS = 1000

FINAL_GAP = 1e-10
"""Relative duality gap to which the final model is trained, if at least `MIN_FINAL_SWEEPS` sweeps
over the entries of X stay below `MAX_FINAL_WORK` entries in all."""

MIN_FINAL_SWEEPS = 100
MAX_FINAL_WORK = 2 * 10**6

LARGE_SCORES = 2**22
"""From this number of scores on (examples times classes), models before the final one are trained
to the relative gap `LARGE_GAP`, and stages may be left out."""

LARGE_GAP = 0.1


@dataclass(frozen=True, slots=True)
class Settings:
    """How accurately the alternating optimization works.

    Parameters
    ----------
    tol : float
        A stage ends when a pass lowers the objective by less than this share of it.
    max_passes : int
        Largest number of passes in a stage.
    solver_tol : float
        Relative duality gap to which the model is trained.
    weight_floor : float
        Examples that are not admitted cost at least this share of their loss when labels are
        assigned, so that they keep a sensible label until they are admitted.
    prior_price : float
        The loss at which an example may break the bounds; infinite where they are binding.
    settled : float
        Once a stage has changed less than this share of the labels, the next one is the last. Only
        for many examples and classes.
    """

    tol: float
    max_passes: int
    solver_tol: float
    weight_floor: float
    prior_price: float
    settled: float = 0.0


class Alternation:
    """Model, labels and weights, and the steps that update each with the others fixed.

    Parameters
    ----------
    examples : Examples
        The examples, with positive weights; every class is a candidate of some example.
    bounds : pair of int arrays of shape (q,)
        Least and greatest number of examples of each label.
    initial_costs : array of shape (total number of candidates,)
        The cost of each candidate in the first assignment.
    settings : Settings
        The accuracy.
    held_out : HeldOutLosses, optional
        Computes the losses that difficulty is measured by; those of the model itself by default.
    """

    model: CrammerSingerResult
    margins: Floats

    def __init__(
        self,
        examples: Examples,
        bounds: Bounds,
        initial_costs: Floats,
        settings: Settings,
        held_out: HeldOutLosses | None = None,
    ) -> None:
        self.X = examples.X
        self.candidates = candidates = examples.sets
        self.importance = examples.weights
        self.bounds = bounds
        self.settings = settings
        self.held_out = held_out
        self.is_large = len(candidates) * len(bounds[0]) >= LARGE_SCORES
        self.weights = np.ones(len(candidates))
        self.state: CrammerSingerResult | None = None
        self.half_squared_norm = 0.0
        self.losses = initial_costs
        self.prices: Floats | None = None
        self.penalty = settings.prior_price * float(examples.weights.mean())
        self.assigned, self.breach = self._assign(initial_costs, np.inf)
        self.admitted_at = np.full(len(candidates), -1)

    @property
    def labels(self) -> NDArray[np.integer]:
        """The index of the label that each example has."""
        return self.candidates.indices[self.assigned]

    def run(self, stages: Sequence[Stage], pace: Pace | None) -> Iterator[Record]:
        """Go through the stages; yield a record of each when it is done."""
        number, ahead = -1, list(stages)
        while ahead:
            number, stage, ahead = number + 1, ahead[0], ahead[1:]
            start, before = time.perf_counter(), self.assigned
            if pace is not None:
                self.update_weights(pace, stage)
            self.admitted_at[(self.weights > 0) & (self.admitted_at < 0)] = number
            trace = self.alternate(stage.C)
            n_changes = int(np.sum(self.assigned != before))
            if self.is_large and n_changes < self.settings.settled * len(before):
                ahead = ahead[-1:]
            yield {
                "C": stage.C,
                "pace": stage.pace,
                "objective": trace[-1],
                "admitted": float(np.mean(self.weights > 0)),
                "mean_weight": float(np.mean(self.weights)),
                "label_changes": n_changes,
                "passes": len(trace) // 2,
                "trace": trace,
                "seconds": time.perf_counter() - start,
            }

    def alternate(self, C: float) -> list[float]:
        """Update model and labels in turn until neither gains; return the objective after each."""
        trace: list[float] = []
        for _ in range(self.settings.max_passes):
            has_moved = self.update_model(C)
            trace.append(self.objective(C))
            if has_moved or len(trace) == 1:  # otherwise the labels are the best ones already
                has_moved = self.update_labels(C)
            trace.append(self.objective(C))
            gain = trace[-3] - trace[-1] if len(trace) > 2 else np.inf
            if not has_moved or gain <= self.settings.tol * trace[-1]:
                break
        return trace

    def objective(self, C: float) -> float:
        """Value of the objective that the current stage minimizes, without the constant f(v, λ)."""
        penalty = self.penalty * self.breach if np.isfinite(self.penalty) else 0.0
        return self.model_objective(C) + C * penalty

    def model_objective(self, C: float) -> float:
        """Value of the part of the objective that depends on the model."""
        loss = (self.weights * self.importance) @ self.losses[self.assigned]
        return float(self.half_squared_norm + C * loss)

    def update_weights(self, pace: Pace, stage: Stage) -> None:
        """Weigh the examples by their difficulty: OP(6)."""
        losses = self.losses
        if self.held_out is not None and self.state is not None:
            losses = self.held_out(self, stage.C)
        difficulty = pace.measure(losses, self.assigned, self.candidates)
        weights = pace.weigh(difficulty, stage, self.importance, self.labels)
        if weights.any():  # otherwise no example would be left to learn from
            self.weights = weights

    def finish(self, C: float) -> None:
        """Train the final model more accurately than those on the way."""
        self.update_model(C, self.settings.solver_tol / (1 if self.is_large else 10))
        entries = self.X.size if isinstance(self.X, np.ndarray) else self.X.nnz
        sweeps = min(MAX_SWEEPS, MAX_FINAL_WORK // max(entries, 1))
        if sweeps >= MIN_FINAL_SWEEPS:
            self.update_model(C, FINAL_GAP, sweeps)

    def update_model(
        self, C: float, tol: float | None = None, max_sweeps: int = MAX_SWEEPS
    ) -> bool:
        """Train the model on the current labels and weights: OP(3). Return True if it has changed.

        The model at hand stays where the new one, which need not be optimal, is no better. So the
        objective never rises.
        """
        if tol is None:
            tol = max(self.settings.solver_tol, LARGE_GAP if self.is_large else 0.0)
        is_first = self.state is None
        if is_first:
            self.losses = np.ones_like(self.losses)  # those of the model that is zero
        attained = self.model_objective(C)
        self.state = self._train(C, tol, max_sweeps)
        if self.state.objective > attained and not is_first:
            return False
        self.model = self.state
        coef, intercept = self.model.coef, self.model.intercept
        self.half_squared_norm = float(np.vdot(coef, coef) + np.vdot(intercept, intercept)) / 2
        pattern = self.candidates.indptr, self.candidates.indices
        self.margins = candidate_margins(self.model.scores, *pattern)
        self.losses = np.maximum(0.0, 1.0 - self.margins)
        return True

    def update_labels(self, C: float) -> bool:
        """Assign the labels of least weighted loss: OP(5). Return True if any has changed."""
        weights = np.maximum(self.weights, self.settings.weight_floor) * self.importance
        costs = self.candidates.spread(weights) * self.losses
        before, old, breach = self.objective(C), self.assigned, self.breach
        self.assigned, self.breach = self._assign(costs, self.penalty)
        if self.objective(C) > before:
            self.assigned, self.breach = old, breach
        return bool((self.assigned != old).any())

    def _train(self, C: float, tol: float, max_sweeps: int) -> CrammerSingerResult:
        """Solve the maximum-margin problem of the current labels and weights."""
        # Between two products of matrices there are many sweeps: threads would wait for each other.
        with threads_for(0.0 if self.is_large else np.inf):
            return fit_crammer_singer(
                self.X,
                self.labels,
                C * self.weights * self.importance,
                len(self.candidates.classes),
                state=self.state,
                tol=tol,
                max_iter=max_sweeps,
            )

    def _assign(self, costs: Floats, penalty: float) -> tuple[NDArray[np.int64], int]:
        """Solve the assignment.

        Returns the place of each chosen label among the candidates, and the number of examples
        outside the bounds.
        """
        solution = assign_labels(
            self.candidates.indptr,
            self.candidates.indices,
            costs,
            *self.bounds,
            prices=self.prices,
            penalty=penalty,
        )
        self.prices = solution.prices
        return solution.places, solution.relaxed


class HeldOutLosses:
    """The losses of all candidates, by models trained on the other folds.

    The models are kept, and each is the start of the next one.

    Parameters
    ----------
    n_folds : int
        Number of folds.
    n : int
        Number of examples.
    seed : int
        Seed of the folds.
    """

    def __init__(self, n_folds: int, n: int, seed: int) -> None:
        splitter = KFold(min(n_folds, n), shuffle=True, random_state=seed)
        self._folds = list(splitter.split(np.empty(n)))
        self._models: list[CrammerSingerResult | None] = [None] * len(self._folds)

    def __call__(self, alternation: Alternation, C: float) -> Floats:
        """Train on the current labels and weights, and return the losses of the candidates.

        Parameters
        ----------
        alternation : Alternation
            The labels and weights.
        C : float
            The regularization constant.

        Returns
        -------
        losses : array of shape (total number of candidates,)
        """
        X, candidates = alternation.X, alternation.candidates
        costs = C * alternation.weights * alternation.importance
        losses = np.empty(len(candidates.indices))
        for place, (others, fold) in enumerate(self._folds):
            model = fit_crammer_singer(
                X[others],
                alternation.labels[others],
                costs[others],
                candidates.shape[1],
                state=self._models[place],
                tol=alternation.settings.solver_tol,
            )
            self._models[place] = model
            asked = candidates[fold]
            scores = ScoreBlocks(X[fold], model.coef, model.intercept)
            margins = candidate_margins(scores, asked.indptr, asked.indices)
            held_out = np.zeros(len(candidates), dtype=bool)
            held_out[fold] = True
            losses[candidates.spread(held_out)] = np.maximum(0.0, 1.0 - margins)
        return losses
