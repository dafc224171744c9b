"""Any method, asked about examples that it was not trained on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from skpll.candidates import CandidateSets

__all__ = ["check_takes_candidates", "held_out_answers"]


def check_takes_candidates(method: BaseEstimator) -> None:
    """Refuse a classifier of scikit-learn, and say what makes one learn from candidate sets."""
    last: Any = method[-1] if isinstance(method, Pipeline) else method
    name = type(last).__name__
    ours = hasattr(last, "estimator")  # a search, say, around a method that takes candidate sets
    if type(last).__module__.startswith("sklearn.") and is_classifier(last) and not ours:
        raise ValueError(
            f"estimator: {name} learns from labels, not from candidate sets; "
            f"CrossFitClassifier({name}()) learns from them with its help."
        )


def held_out_answers(
    method: BaseEstimator,
    X: Any,
    candidates: CandidateSets,
    parts: Iterable[tuple[NDArray[Any], NDArray[Any]]],
    sample_weight: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Give the probabilities of the classes by clones that were trained without the example.

    Parameters
    ----------
    method : classifier of partial labels, or a pipeline that ends in one
        It has `predict_proba`, and is cloned.
    X : array, sparse matrix or data frame of n rows
        The features.
    candidates : CandidateSets
        The candidate sets.
    parts : iterable of pairs of int arrays
        The examples to train on and those to ask about.
    sample_weight : array of shape (n,), optional
        How much each example counts, for a method that takes weights.

    Returns
    -------
    probabilities : array of shape (n, q)
        Not a number for an example that nobody was asked about.
    """
    answers = np.full(candidates.shape, np.nan)
    for train, test in parts:
        model: Any = clone(method)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight[train]}
        model.fit(_safe_indexing(X, train), candidates[train], **weights)
        answers[test] = model.predict_proba(_safe_indexing(X, test))
    return answers
