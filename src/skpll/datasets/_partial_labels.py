"""Turn true labels into candidate sets by adding false candidates at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpll._errors import ArgumentError
from skpll._formats import encode, from_pairs
from skpll._labels import sort_classes
from skpll._typing import Array, Classifier, Floats, Label, MatrixLike
from skpll.candidates import CandidateSets

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.pipeline import Pipeline

ROWS_PER_WORD = 12
"""The mean number of examples of a word, if the number of words is not given."""

_BLOCK_CELLS = 2**20
_N_FOLDS = 5
_STREAM = 0x706C6C  # separates these draws from other draws with the same seed

Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | None
Codes: TypeAlias = NDArray[np.int32]
Rows: TypeAlias = NDArray[np.intp]
Scores: TypeAlias = Callable[[Rows], Floats]
"""From row numbers to a number for each label: a score, or a probability."""


_REFUSED = {
    "uniform": (),
    "feature": ("epsilon",),
    "flip": ("epsilon", "p", "noise"),
    "subset": ("epsilon", "p", "noise"),
    "instance": ("epsilon", "p", "noise"),
    "dictionary": ("epsilon", "p", "noise", "q"),
}
"""The kinds of false candidates, and the arguments that have no meaning with them."""

_NEEDED = {"uniform": "p", "feature": "p", "flip": "q"}
_FROM_FEATURES = ("feature", "instance", "dictionary")


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
    The kinds with ``r`` give a random score to each false label and take the ``r`` best. For
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
    rows, n_classes = np.arange(len(codes)), len(names)
    _check_kind(kind, {"epsilon": epsilon, "p": p, "q": q, "noise": noise or None}, X, len(codes))
    random, random_of_noise = _own_streams(random_state)
    if p is not None:
        _check_false_count(r, n_classes, noise)
        rows = np.sort(random.choice(len(codes), round(p * len(codes)), replace=False))
    sources: Iterable[tuple[Rows, Scores]]
    if kind == "feature" or kind == "instance":
        models = _held_out_confidences(X, codes, n_classes, estimator, random)
        sources = (
            (np.intersect1d(rows, fold), _perturbed(confidences, random))
            if kind == "feature"
            else (fold, _relative(confidences, codes, q))
            for fold, confidences in models
        )
    elif kind == "dictionary":
        sources = [(rows, _labels_of_words(X, codes, n_classes, n_words, min_share, random))]
        at_least_one = False
    elif epsilon is not None:
        sources = [(rows, _coupled(codes, n_classes, epsilon, random))]
    elif kind == "uniform":
        sources = [(rows, lambda block: random.random((len(block), n_classes)))]
    else:
        chance = 0.5 if kind == "subset" or q is None else q
        sources = [(rows, lambda block: np.full((len(block), n_classes), chance))]

    pairs = []
    for source, score in sources:
        for block in _blocks(source, n_classes):
            scores, true = score(block), codes[block]
            if p is None:
                place, label = _drawn(scores, true, at_least_one, random)
            else:
                place, label = _best(scores, true, r)
            pairs.append((block[place], label))
    sets = _with_labels(codes, pairs, names)
    if not noise:
        return sets
    shown = codes.copy()
    missing = np.sort(random_of_noise.choice(len(codes), round(noise * len(codes)), replace=False))
    for block in _blocks(missing, n_classes):
        scores = random_of_noise.random((len(block), n_classes))
        scores[sets[block].to_matrix().toarray() > 0] = -np.inf
        shown[block] = np.argmax(scores, axis=1)
    return _with_labels(shown, pairs, names)


def _with_labels(
    codes: Codes, pairs: Iterable[tuple[Rows, NDArray[np.intp]]], names: Array
) -> CandidateSets:
    """Return sets of one label for each row, and of the labels of further pairs (row, label)."""
    rows, labels = zip((np.arange(len(codes)), codes), *pairs, strict=True)
    pattern = from_pairs(np.concatenate(rows), np.concatenate(labels), len(codes), names)
    return CandidateSets._trusted(*pattern)._check("y")


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


def _encode(y: ArrayLike, classes: Iterable[Label] | None) -> tuple[Codes, Array]:
    """Turn labels into class numbers, or name the first bad label."""
    values = list(y) if isinstance(y, list | tuple) else np.asarray(y)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        problem = f"expected one label per example, got an array of shape {values.shape}."
        raise ArgumentError("y", problem)
    if not len(values):
        raise ArgumentError("y", "there are no examples.")
    names = None if classes is None else sort_classes(classes)[0]
    return encode(values, names, np.arange(len(values) + 1), "y")


def _check_kind(kind: str, shares: Mapping[str, object], X: MatrixLike, n_samples: int) -> None:
    """Refuse an unknown kind, and arguments that it lacks or has no use for."""
    if kind not in _REFUSED:
        known = ", ".join(map(repr, _REFUSED))
        raise ArgumentError("kind", f"{kind!r} is unknown; choose {known}.")
    for name, share in shares.items():
        if share is not None and name in _REFUSED[kind]:
            raise ArgumentError(name, f"has no meaning with kind={kind!r}; leave it out.")
        if share is not None or name == _NEEDED.get(kind):
            _check_share(share, name)
    if kind in _FROM_FEATURES:
        if X is None:
            raise ArgumentError("X", f"kind={kind!r} needs the features; pass X=.")
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows != n_samples:
            raise ArgumentError("X", f"has {n_rows} rows for the {n_samples} labels of y.")


def _check_share(value: object, name: str) -> None:
    """Refuse an argument that is not a number between 0 and 1."""
    if not (isinstance(value, Real) and 0 <= float(value) <= 1):
        raise ArgumentError(name, f"{value!r} is not a number between 0 and 1.")


def check_count(value: object, name: str, smallest: int, largest: float = math.inf) -> None:
    """Refuse an argument that is not a whole number between two bounds, which are allowed."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (whole and smallest <= value <= largest):  # type: ignore[operator]
        upper = "" if largest == math.inf else f" and at most {largest}"
        raise ArgumentError(name, f"{value!r} is not a whole number of at least {smallest}{upper}.")


def _check_false_count(r: int, n_classes: int, noise: float) -> None:
    """Refuse a number of false candidates that the classes cannot supply."""
    check_count(r, "r", 1)
    if r >= n_classes:
        raise ArgumentError(
            "r",
            f"{r} false candidates are too many for {n_classes} classes, of which {n_classes - 1} "
            "are false; lower r, or name further classes if they exist.",
        )
    if noise and r + 1 == n_classes:
        problem = f"a set of {r + 1} candidates has no label outside it; lower r."
        raise ArgumentError("noise", problem)


def check_seed(random_state: Seed) -> np.random.RandomState:
    """Make a source of draws from a seed; a source that is given is drawn from, and so advanced.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        What the user gave; None stands for NumPy's global source.

    Returns
    -------
    RandomState
    """
    from sklearn.utils import check_random_state

    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    return check_random_state(random_state)


def _blocks(rows: Rows, n_classes: int) -> Iterator[Rows]:
    """Cut rows into runs whose scores fit into a bounded piece of memory."""
    step = max(1, _BLOCK_CELLS // n_classes)
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _best(scores: Floats, true: Codes, r: int) -> tuple[Rows, NDArray[np.intp]]:
    """Return the places and the labels of the r best false labels of each row."""
    scores[np.arange(len(true)), true] = -np.inf
    best = np.argpartition(scores, -r, axis=1)[:, -r:]
    return np.repeat(np.arange(len(true)), r), best.ravel()


def _drawn(
    chances: Floats, true: Codes, at_least_one: bool, random: np.random.Generator
) -> tuple[Rows, NDArray[np.intp]]:
    """Return the places and the false labels that are drawn, each with a chance of its own."""
    drawn = random.random(chances.shape) < chances
    drawn[np.arange(len(true)), true] = False
    if at_least_one:
        alone = np.flatnonzero(~drawn.any(axis=1))
        n_classes = drawn.shape[1]
        others = random.integers(1, n_classes, size=len(alone))
        drawn[alone, (true[alone] + others) % n_classes] = True
    place, label = np.nonzero(drawn)
    return place, label


def _coupled(codes: Codes, n_classes: int, epsilon: float, random: np.random.Generator) -> Scores:
    """Score the label coupled to the true one highest with probability ε, else lowest."""
    partner = (np.arange(n_classes) + random.integers(1, n_classes, size=n_classes)) % n_classes

    def score(rows: Rows) -> Floats:
        draws = random.random((len(rows), n_classes + 1))
        scores, coin = draws[:, :-1], draws[:, -1]
        scores[np.arange(len(rows)), partner[codes[rows]]] = np.where(coin < epsilon, 1.0, -1.0)
        return scores

    return score


def _perturbed(confidences: Scores, random: np.random.Generator) -> Scores:
    """Score labels by perturbed log-probabilities; labels unknown to the model come last."""

    def score(rows: Rows) -> Floats:
        weights = confidences(rows)
        return np.log(weights) + random.gumbel(size=weights.shape)

    return score


def _relative(confidences: Scores, codes: Codes, mean: float | None) -> Scores:
    """Return the confidences in false labels, relative to the largest of them.

    With a mean over all labels, each row is scaled to it before probabilities above one are cut
    off.
    """

    def chances(rows: Rows) -> Floats:
        found = confidences(rows)
        found[np.arange(len(rows)), codes[rows]] = 0.0
        found /= found.max(axis=1, keepdims=True)
        if mean is not None:
            found *= mean / found.mean(axis=1, keepdims=True)
        return np.minimum(found, 1.0)

    return chances


def _labels_of_words(
    X: MatrixLike,
    codes: Codes,
    n_classes: int,
    n_words: int | None,
    min_share: float,
    random: np.random.Generator,
) -> Scores:
    """Return one for the frequent labels of an example's word, which is a cluster of features."""
    from sklearn.cluster import KMeans

    _check_share(min_share, "min_share")
    if n_words is not None and n_words < 1:
        raise ArgumentError("n_words", f"{n_words} is not a positive number of words.")
    wanted = max(2, len(codes) // ROWS_PER_WORD) if n_words is None else n_words
    seed = int(random.integers(2**31))
    clusters = KMeans(min(wanted, len(codes)), n_init=1, random_state=seed)
    words = _standardized(X, clusters).fit_predict(X)
    counts = np.zeros((words.max() + 1, n_classes))
    np.add.at(counts, (words, codes), 1)
    listed = (counts > min_share * counts.sum(axis=1, keepdims=True)).astype(float)
    return lambda rows: listed[words[rows]]


def _held_out_confidences(
    X: MatrixLike,
    codes: Codes,
    n_classes: int,
    estimator: BaseEstimator | None,
    random: np.random.Generator,
) -> Iterator[tuple[Rows, Scores]]:
    """Yield the rows of each fold, and the confidences of a model fitted on the other folds.

    They are the probabilities of all labels; none is zero.
    """
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold
    from sklearn.utils import _safe_indexing

    default = _standardized(X, LogisticRegression(max_iter=1000))
    model = default if estimator is None else estimator
    if not hasattr(model, "predict_proba"):
        raise ArgumentError("estimator", f"{model!r} has no predict_proba; choose one that has.")
    if len(codes) < 2:
        raise ArgumentError("y", "kind='feature' and 'instance' need two examples at least.")

    seed = int(random.integers(2**32))
    folds = KFold(min(_N_FOLDS, len(codes)), shuffle=True, random_state=seed)
    for train, test in folds.split(codes):
        fitted = clone(model).fit(_safe_indexing(X, train), codes[train])

        def confidences(rows: Rows, fitted: Classifier = fitted) -> Floats:
            weights = np.zeros((len(rows), n_classes))
            weights[:, fitted.classes_] = fitted.predict_proba(_safe_indexing(X, rows))
            return np.maximum(weights, np.finfo(np.float64).tiny)

        yield test, confidences


def _standardized(X: MatrixLike, model: BaseEstimator) -> Pipeline:
    """Return a pipeline of a model on standardized features, which may be sparse."""
    from scipy.sparse import issparse
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(with_mean=not issparse(X)), model)
