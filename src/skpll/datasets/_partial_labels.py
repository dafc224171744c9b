"""Turn true labels into candidate sets by adding false candidates at random."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpll._labels import LabelError, encode_labels, sort_classes
from skpll._typing import Array, Classifier, Label, MatrixLike
from skpll.candidates import CandidateSets

from . import _dictionary, _flips
from ._checks import Seed, check_false_count, check_seed, check_share

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_BLOCK_CELLS = 2**20
_N_FOLDS = 5
_DRAWN_ONE_BY_ONE = ("flip", "subset", "instance")
_STREAM = 0x706C6C  # separates these draws from other draws with the same seed

Rows: TypeAlias = NDArray[np.intp]
Scores: TypeAlias = NDArray[np.float64]


def make_partial_labels(
    y: ArrayLike,
    *,
    p: float | None = None,
    r: int = 1,
    epsilon: float | None = None,
    kind: Literal["uniform", "feature", "flip", "subset", "instance", "dictionary"] = "uniform",
    q: float | None = None,
    at_least_one: bool = False,
    n_words: int | None = None,
    min_share: float = 0.05,
    X: MatrixLike = None,
    estimator: BaseEstimator | None = None,
    noise: float = 0.0,
    classes: Iterable[Label] | None = None,
    random_state: Seed = None,
) -> CandidateSets:
    r"""Hide true labels among false candidates, as controlled experiments do.

    A share ``p`` of the examples, exactly ``round(p * n)`` of them chosen at random, get ``r``
    false candidates each next to their true label; the other examples keep their true label
    alone. Which labels become the false candidates of an example depends on ``kind``:

    - ``"uniform"``: ``r`` false labels drawn without replacement, with equal probabilities [1]_.
    - ``"uniform"`` with ``epsilon``: every class has one label coupled to it, drawn at random once
      per call. The coupled label of the true class is a false candidate with probability
      ``epsilon``; the remaining candidates are drawn uniformly from the other false labels. The
      usual setting is ``p=1, r=1`` with ``epsilon`` up to 1, where the couple can no longer be
      told apart. With ``r = q − 1`` all labels are candidates anyway, whatever ``epsilon``.
    - ``"feature"``: labels that a model confuses with the true one. The model is fitted on the true
      labels in five shuffled folds; the false candidates of an example are drawn one after the
      other, without replacement, with probabilities proportional to those that the model fitted
      on the other folds gives them.

    The other kinds have no ``p`` and ``r``. All but the last draw each false label of each example
    on its own:

    - ``"flip"``: with probability ``q`` [2]_.
    - ``"subset"``: all sets that contain the true label are equally probable.
    - ``"instance"``: by the confidence of a model in it, divided by the largest confidence in a
      false label of the same example [3]_, so that at least one is always drawn. With ``q`` these
      numbers are scaled to a mean of ``q`` over all labels and cut off at one, as the code of its
      authors does with 0.4 for ten classes. The model is that of ``"feature"``.

    - ``"dictionary"``: as a dictionary makes them, which has all labels of a word. The examples
      fall into words, which are clusters of the features, and the set of an example has the labels
      of more than ``min_share`` of the examples of its word, and its own. Words with one label give
      singletons; examples of a word have the same set.

    With ``noise`` some sets miss the truth: in exactly ``round(noise * n)`` of all examples,
    ambiguous or not, the true label gives its place to a label that is not in the set, all such
    labels alike. Set sizes stay as they are, and so do all other sets of the same seed.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels.
    p : float
        Share of the examples that become ambiguous, between 0 and 1; for ``"uniform"`` and
        ``"feature"``, which need it.
    r : int, default=1
        Number of false candidates of each of them, less than the number of classes.
    epsilon : float, optional
        Probability of the coupled label, between 0 and 1; for ``kind="uniform"``.
    kind : {"uniform", "feature", "flip", "subset", "instance", "dictionary"}, default="uniform"
        Where the false candidates come from.
    q : float, optional
        Probability of each false label for ``kind="flip"``, which needs it; mean of the scaled
        confidences for ``kind="instance"``.
    at_least_one : bool, default=False
        Whether an example of ``kind="flip"`` or ``"subset"`` for which no false label was drawn
        gets a random one.
    n_words : int, optional
        Number of words for ``kind="dictionary"``; by default one for twelve examples.
    min_share : float, default=0.05
        Share of the examples of a word that a label of its set has to exceed, between 0 and 1.
    X : array-like, sparse matrix or data frame of shape (n, d), optional
        Features; needed and used with ``kind="feature"``, ``"instance"`` and ``"dictionary"`` only.
    estimator : scikit-learn classifier with ``predict_proba``, optional
        The model of ``kind="feature"`` and ``"instance"``; it sees class numbers as labels. By
        default multinomial logistic regression on standardized features. An estimator that is
        itself random needs its own ``random_state`` for the result to be reproducible.
    noise : float, default=0.0
        Share of the examples whose set misses the true label, between 0 and 1; for ``"uniform"``
        and ``"feature"``.
    classes : sequence of labels, optional
        All labels there are, in any order; by default those that occur in ``y``.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws. They come from a stream of their own: a splitter with the same seed
        doesn't pick the rows that became ambiguous.

    Returns
    -------
    CandidateSets
        ``n`` candidate sets, each of which contains the true label unless there is noise.

    Raises
    ------
    ValueError
        If an argument is out of range or missing, or ``y`` has a missing label.

    Notes
    -----
    Every kind gives a random score to each false label and takes the ``r`` best. For
    probabilities :math:`w_1, …, w_q` the scores are :math:`\log w_j + G_j` with independent
    standard Gumbel variables :math:`G_j`; the order of these scores has the distribution of
    successive draws without replacement. Scores are held for one block of rows at a time, never
    as an n × q matrix; what grows with ``n`` is a few vectors as long as the result.

    References
    ----------
    .. [1] T. Cour, B. Sapp and B. Taskar. Learning from partial labels. Journal of Machine
       Learning Research 12, 2011.
    .. [2] J. Lv, M. Xu, L. Feng, G. Niu, X. Geng and M. Sugiyama. Progressive identification of
       true labels for partial-label learning. ICML 2020.
    .. [3] N. Xu, C. Qiao, X. Geng and M.-L. Zhang. Instance-dependent partial label learning.
       NeurIPS 2021.

    Examples
    --------
    >>> from skpll.datasets import make_partial_labels
    >>> S = make_partial_labels(["a", "b", "c", "a"], p=0.5, r=1, random_state=0)
    >>> S.sizes.tolist().count(2)
    2
    >>> bool(S.contains(["a", "b", "c", "a"]).all())
    True
    """
    codes, names = _encode(y, classes)
    n_samples, n_classes = len(codes), len(names)
    _check_kind(kind, epsilon, X, n_samples)
    random, random_of_noise = _own_streams(random_state)
    if kind in _DRAWN_ONE_BY_ONE:
        _check_flips(kind, p, q, noise)
        chances: Iterator[tuple[Rows, _flips.Chances]]
        if kind == "instance":
            models = _models(X, codes, estimator, random)
            chances = (
                (rows, _flips.by_confidence(_confidences(X, fitted, n_classes), codes, q))
                for rows, fitted in models
            )
        else:
            share = 0.5 if kind == "subset" or q is None else q
            chances = iter([(np.arange(n_samples), _flips.constant(share, n_classes))])
        blocks = ((block, f) for rows, f in chances for block in _blocks(rows, n_classes))
        return CandidateSets(*_flips.draw(blocks, codes, at_least_one, random), names)
    if kind == "dictionary":
        _check_flips(kind, p, q, noise)
        check_share(min_share, "min_share")
        if n_words is not None and n_words < 1:
            raise ValueError(f"n_words: {n_words} is not a positive number of words.")
        words = _dictionary.draw_words(X, n_words, random)
        return CandidateSets(*_dictionary.sets_of_words(words, codes, n_classes, min_share), names)
    check_share(p, "p")
    assert p is not None
    check_false_count(r, n_classes)
    _check_noise(noise, r, n_classes)

    chosen = np.sort(random.choice(n_samples, round(p * n_samples), replace=False))
    sizes = np.ones(n_samples, dtype=np.int64)
    sizes[chosen] += r
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    indices = np.empty(indptr[-1], dtype=np.int32)
    indices[indptr[:-1]] = codes
    sources: Iterator[tuple[Rows, Callable[[Rows], Scores]]]
    if kind == "feature":
        sources = (
            (np.intersect1d(chosen, rows), _gumbel_scores(X, fitted, n_classes, random))
            for rows, fitted in _models(X, codes, estimator, random)
        )
    elif epsilon is not None:
        sources = iter([(chosen, _coupled(codes, n_classes, epsilon, random))])
    else:
        sources = iter([(chosen, lambda rows: random.random((len(rows), n_classes)))])
    false_places = np.arange(1, r + 1)
    for rows, score in sources:
        for block in _blocks(rows, n_classes):
            places = indptr[block, np.newaxis] + false_places
            indices[places] = _best_false_labels(score(block), codes[block], r)
    missing = np.sort(random_of_noise.choice(n_samples, round(noise * n_samples), replace=False))
    for block in _blocks(missing, n_classes):
        scores = random_of_noise.random((len(block), n_classes))
        indices[indptr[block]] = _best_outside(scores, indptr, indices, block)
    return CandidateSets(indptr, indices, names)


def _own_streams(random_state: Seed) -> tuple[np.random.Generator, np.random.Generator]:
    """Make two generators whose draws have nothing in common with others of the same seed.

    scikit-learn's splitters begin with ``permutation(n)``; whoever draws rows from the same
    stream draws the rows of one fold. The second generator is for noise.
    """
    words = check_seed(random_state).randint(2**32, size=4, dtype=np.int64).tolist()
    candidates, noise = (
        np.random.default_rng(np.random.SeedSequence(words, spawn_key=key))
        for key in ((_STREAM,), (_STREAM, 1))
    )
    return candidates, noise


def _encode(y: ArrayLike, classes: Iterable[Label] | None) -> tuple[NDArray[np.int32], Array]:
    """Turn labels into class numbers, or name the first bad label."""
    values = list(y) if isinstance(y, list | tuple) else np.asarray(y)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ValueError(
            f"y: expected one label per example, got an array of shape {values.shape}."
        )
    if not len(values):
        raise ValueError("y: there are no examples.")
    names = None if classes is None else sort_classes(classes)[0]
    try:
        return encode_labels(values, names)
    except LabelError as error:
        raise ValueError(f"y: row {error.position}: {error}") from None


def _check_kind(kind: str, epsilon: float | None, X: MatrixLike, n_samples: int) -> None:
    if kind not in ("uniform", "feature", "dictionary", *_DRAWN_ONE_BY_ONE):
        raise ValueError(
            f"kind: {kind!r} is unknown; choose 'uniform', 'feature', 'flip', 'subset', 'instance' "
            "or 'dictionary'."
        )
    if epsilon is not None:
        check_share(epsilon, "epsilon")
    if epsilon is not None and kind != "uniform":
        raise ValueError(f"epsilon: has no meaning with kind={kind!r}; leave it out.")
    if kind not in ("feature", "instance", "dictionary"):
        return
    if X is None:
        raise ValueError(f"X: kind={kind!r} needs the features; pass X=.")
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows != n_samples:
        raise ValueError(f"X: has {n_rows} rows for the {n_samples} labels of y.")


def _check_flips(kind: str, p: float | None, q: float | None, noise: float) -> None:
    if p is not None:
        raise ValueError(f"p: has no meaning with kind={kind!r}; leave it out.")
    if noise != 0:
        raise ValueError(f"noise: has no meaning with kind={kind!r}; leave it out.")
    if q is not None and kind == "dictionary":
        raise ValueError("q: has no meaning with kind='dictionary'; leave it out.")
    if q is not None or kind == "flip":
        check_share(q, "q")


def _check_noise(noise: float, r: int, n_classes: int) -> None:
    check_share(noise, "noise")
    if noise > 0 and r + 1 >= n_classes:
        raise ValueError(
            f"noise: a set of {r + 1} candidates has no label outside it that could take the place "
            f"of the true one, among {n_classes} classes; lower r, or leave noise out."
        )


def _blocks(rows: Rows, n_classes: int) -> Iterator[Rows]:
    """Cut rows into runs whose scores fit into a bounded piece of memory."""
    step = max(1, _BLOCK_CELLS // n_classes)
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _best_false_labels(scores: Scores, true: NDArray[np.int32], r: int) -> NDArray[np.intp]:
    """Return the r false labels with the highest scores of each row, in any order."""
    scores[np.arange(len(true)), true] = -np.inf
    return np.argpartition(scores, -r, axis=1)[:, -r:]


def _best_outside(
    scores: Scores, indptr: NDArray[np.int64], indices: NDArray[np.int32], rows: Rows
) -> NDArray[np.intp]:
    """Return the label with the highest score that is not in the set of each row."""
    starts, sizes = indptr[rows], np.diff(indptr)[rows]
    places = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    scores[np.repeat(np.arange(len(rows)), sizes), indices[places]] = -np.inf
    return np.argmax(scores, axis=1)


def _coupled(
    codes: NDArray[np.int32], n_classes: int, epsilon: float, random: np.random.Generator
) -> Callable[[Rows], Scores]:
    """Score the label coupled to the true one highest with probability ε, else lowest."""
    partner = (np.arange(n_classes) + random.integers(1, n_classes, size=n_classes)) % n_classes

    def score(rows: Rows) -> Scores:
        draws = random.random((len(rows), n_classes + 1))
        scores, coin = draws[:, :-1], draws[:, -1]
        scores[np.arange(len(rows)), partner[codes[rows]]] = np.where(coin < epsilon, 1.0, -1.0)
        return scores

    return score


def _models(
    X: MatrixLike,
    codes: NDArray[np.int32],
    estimator: BaseEstimator | None,
    random: np.random.Generator,
) -> Iterator[tuple[Rows, Classifier]]:
    """Yield the rows of each fold, and a model that was fitted on the other folds."""
    from sklearn.base import clone
    from sklearn.model_selection import KFold
    from sklearn.utils import _safe_indexing

    model = _default_model(X) if estimator is None else estimator
    if not hasattr(model, "predict_proba"):
        raise ValueError(f"estimator: {model!r} has no predict_proba; choose one that has.")
    if len(codes) < 2:
        raise ValueError("y: kind='feature' and 'instance' need two examples at least.")
    seed = int(random.integers(2**32))
    folds = KFold(min(_N_FOLDS, len(codes)), shuffle=True, random_state=seed)
    for train, test in folds.split(codes):
        yield test, clone(model).fit(_safe_indexing(X, train), codes[train])


def _gumbel_scores(
    X: MatrixLike, fitted: Classifier, n_classes: int, random: np.random.Generator
) -> Callable[[Rows], Scores]:
    """Score labels by perturbed log-probabilities; labels unknown to the model come last."""
    confidences = _confidences(X, fitted, n_classes)

    def score(rows: Rows) -> Scores:
        weights = confidences(rows)
        return np.log(weights) + random.gumbel(size=weights.shape)

    return score


def _confidences(X: MatrixLike, fitted: Classifier, n_classes: int) -> Callable[[Rows], Scores]:
    """Return the model's probabilities of all labels; none is zero."""
    from sklearn.utils import _safe_indexing

    def confidences(rows: Rows) -> Scores:
        weights = np.full((len(rows), n_classes), np.finfo(np.float64).tiny)
        found = fitted.predict_proba(_safe_indexing(X, rows))
        weights[:, fitted.classes_] = np.maximum(found, np.finfo(np.float64).tiny)
        return weights

    return confidences


def _default_model(X: MatrixLike) -> Classifier:
    from scipy.sparse import issparse
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(
        StandardScaler(with_mean=not issparse(X)), LogisticRegression(max_iter=1000)
    )
