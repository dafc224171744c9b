"""Losses by models that have not seen the example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from skpll.solvers.crammer_singer import CrammerSingerResult, fit_crammer_singer
from skpll.solvers.margins import candidate_margins

if TYPE_CHECKING:
    from ._alternating import Alternation

__all__ = ["HeldOutLosses"]


class HeldOutLosses:
    """The losses of all candidates, by models trained on the other folds.

    The models are kept, and each goes on from where it was when it is asked again.

    Parameters
    ----------
    n_folds : int
        Number of folds.
    n : int
        Number of examples.
    seed : int
        Draws the folds.
    """

    def __init__(self, n_folds: int, n: int, seed: int) -> None:
        splitter = KFold(min(n_folds, n), shuffle=True, random_state=seed)
        self._folds = list(splitter.split(np.empty(n)))
        self._models: list[CrammerSingerResult | None] = [None] * len(self._folds)

    def __call__(self, alternation: Alternation, C: float) -> NDArray[np.float64]:
        """Train on the labels and weights at hand, and give the losses of the candidates.

        Parameters
        ----------
        alternation : Alternation
            The labels and weights.
        C : float
            The regularization constant.

        Returns
        -------
        losses : array of shape (number of candidates in all,)
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
                fit_intercept=alternation.settings.fit_intercept,
            )
            self._models[place] = model
            asked = candidates[fold]
            margins = candidate_margins(
                X[fold], model.coef, model.intercept, asked.indptr, asked.indices
            )
            held_out = np.zeros(len(candidates), dtype=bool)
            held_out[fold] = True
            losses[np.repeat(held_out, candidates.sizes)] = np.maximum(0.0, 1.0 - margins)
        return losses
