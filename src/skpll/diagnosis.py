r"""What can't be learned from some candidate sets, before or after a method was fitted to them.

A method can tell two labels apart if they come apart: if there are rows in which one of them may be
right and the other is no candidate. How often they don't is the ambiguity degree of Cour, Sapp and
Taskar (2011),

.. math:: \varepsilon_{jk} = P(k \in S \mid y = j), \qquad k \ne j,

which has to be below one for every pair. The true label y is not observed. What is observed is
:math:`P(k \in S \mid j \in S)`, or, after a fit, :math:`P(k \in S \mid \hat y = j)` with the label
:math:`\hat y` that was decided on. Where the former is one, the ambiguity degree is one, too, since
the truth is in the set; the reverse does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import beta
from sklearn.utils import _safe_indexing, check_array, check_consistent_length

from ._labels import as_objects, lookup_codes
from ._temperature import fit_temperature, log_scores, probabilities, set_likelihoods
from ._typing import CandidatesLike, Floats, Label, MatrixLike
from .candidates import CandidateSets, as_candidates

__all__ = ["Ambiguity", "Diagnosis", "Finding", "diagnose"]

Codes = NDArray[np.intp]
Kind = Literal["everywhere", "together", "dependent", "features", "sets"]

LEVEL = 0.95
"""The level of all intervals."""

ALMOST_ALWAYS = 0.95
"""A label is in almost every set if it is in this share of the sets of other labels."""

TOGETHER = 0.9
"""Labels never come apart if the other one is a candidate in this share of the rows decided for
each of them. It is below one since some decisions are wrong."""

MIN_ROWS = 20
"""Fewer rows than this don't show that labels never come apart."""

MIN_FEATURE_ROWS = 100
"""Fewer rows than this don't show that features do not help."""

MAX_ROWS = 50_000
"""Pairs of labels are counted in at most this number of rows."""

FOREST_ROWS = 2000
"""Features are tried on at most this number of rows."""


class Ambiguity(NamedTuple):
    """How often another label occurs together with a label.

    Parameters
    ----------
    label : label
        The label.
    other : label
        The label that occurs together with it most often.
    share : float
        The share of the rows of the label in which the other one is a candidate, too.
    low, high : float
        Its 95 % interval (Clopper and Pearson), corrected for the choice among all other labels.
    rows : int
        The number of rows of the label: those with it as a candidate, or those decided for it.
    """

    label: Label
    other: Label
    share: float
    low: float
    high: float
    rows: int


class Finding(NamedTuple):
    """Something that can't be learned.

    Parameters
    ----------
    kind : {"everywhere", "together", "dependent", "features", "sets"}
        A label in almost every set; labels that never come apart; a label that is never a candidate
        without another one; features that do not help; sets that are more predictable than labels.
    labels : tuple
        The labels that it is about. For a dependent label, the other one comes second.
    rows : int array
        The rows that it is about.
    what, meaning, remedy : str
        What was found, what it means for the confidences, and what to do.
    """

    kind: Kind
    labels: tuple[Label, ...]
    rows: Codes
    what: str
    meaning: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what} {self.meaning} {self.remedy}"


@dataclass(frozen=True)
class Diagnosis:
    """What was found in candidate sets; `print` shows it.

    Parameters
    ----------
    findings : list of Finding
        What can't be learned; empty where nothing was found.
    ambiguity : list of Ambiguity
        For each label, the one that occurs together with it most often.
    """

    findings: list[Finding]
    ambiguity: list[Ambiguity]

    def sentences(self) -> list[str]:
        """Return a text of some sentences for each finding."""
        return [str(finding) for finding in self.findings]

    def __str__(self) -> str:
        lines = [f"- {text}" for text in self.sentences()] or ["No obstacle was found."]
        if self.ambiguity:
            worst = max(self.ambiguity, key=lambda each: each.low)
            lines.append(
                f"Largest ambiguity: {worst.other!r} comes along in {worst.share:.0%} of the "
                f"{worst.rows} rows of {worst.label!r} (95 % interval {worst.low:.2f} to "
                f"{worst.high:.2f})."
            )
        return "\n".join(lines)


def diagnose(
    y: CandidatesLike, X: MatrixLike | None = None, *, confidences: MatrixLike | None = None
) -> Diagnosis:
    """Look for what can't be learned from candidate sets.

    Labels are looked for that are in almost every set, that never come apart, or that are never a
    candidate without a certain other label. With features, a random forest that was not grown on a
    row is asked whether it finds the candidate set of the row more likely than the frequencies of
    the labels do.

    Parameters
    ----------
    y : candidate sets of n examples
        In a format of `skpll.as_candidates`.
    X : array-like or sparse matrix of shape (n, d), optional
        The features.
    confidences : array or sparse matrix of shape (n, q), optional
        `label_distributions_` of a fitted method. With them, labels are found that are candidates
        of other rows one without the other, but not of the rows that were decided for either.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> from skpll import diagnose
    >>> S = [{"cat", "dog"}, {"cat", "dog", "eel"}, {"eel"}, {"eel", "fly"}, {"fly"}] * 10
    >>> found = diagnose(S)
    >>> [(finding.kind, finding.labels, len(finding.rows)) for finding in found.findings]
    [('together', ('cat', 'dog'), 20)]
    >>> print(found.findings[0].what)
    'cat' and 'dog' never come apart: the 20 rows with one of them have all of them.
    """
    sets = as_candidates(y)
    if X is not None:
        X = check_array(X, accept_sparse="csr", ensure_all_finite="allow-nan", dtype=np.float64)
        check_consistent_length(X, sets)
    values = None if confidences is None else sets.entries(confidences)
    findings = list(find_in_sets(sets, values))
    if X is not None and (useless := _useless_features(sets, X)) is not None:
        findings.append(useless)
    return Diagnosis(findings, _Pairs(sets, values).ambiguity())


def find_in_sets(sets: CandidateSets, confidences: Floats | None = None) -> Iterator[Finding]:
    """Yield what can't be learned from the sets, given confidences in the candidates or none."""
    if len(sets.classes) < 2:
        return
    pairs = _Pairs(sets)
    everywhere, dependent = pairs.everywhere(), pairs.dependent()
    for code in everywhere:
        yield _everywhere(sets, code)
    found = {(a, b) for a, b in dependent if a < b and (b, a) in dependent}
    if confidences is not None:
        found |= _Pairs(sets, confidences).never_apart()
    found = {pair for pair in found if not set(pair) & set(everywhere)}
    if sets.weights is not None:  # they tell labels apart
        found = set()
    together = _groups(found, len(sets.classes))
    for number in np.unique(together[together >= 0]):
        yield _together(sets, np.flatnonzero(together == number))
    for label, other in sorted(dependent):
        if other not in everywhere and (together[label] < 0 or together[label] != together[other]):
            yield _dependent(sets, label, other)


def _groups(pairs: set[tuple[int, int]], q: int) -> Codes:
    """Return for each of q classes the number of the group that its pairs belong to, or −1."""
    ends = np.array(sorted(pairs), dtype=np.intp).reshape(-1, 2)
    graph = sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(q, q))
    _, number = sparse.csgraph.connected_components(graph, directed=False)
    return np.where(np.isin(np.arange(q), ends), number, -1).astype(np.intp)


def share_out(
    sets: CandidateSets, confidences: Floats, groups: Iterable[Sequence[Label]], prior: Floats
) -> Floats:
    """Share out the confidence in the labels of a group by their prior, in every row.

    Parameters
    ----------
    sets : CandidateSets
        The candidate sets.
    confidences : array
        The confidence in each candidate, in the order of ``sets.indices``.
    groups : iterable of sequences of labels
        Labels that never come apart; no label is in two of them.
    prior : array of shape (q,)
        The expected share of each class.

    Returns
    -------
    confidences : array
        Their sum in each row, and in each group of a row, is what it was.
    """
    shared, rows = confidences.copy(), sets.rows
    for labels in groups:
        members = np.isin(sets.indices, lookup_codes(list(labels), sets.classes))
        weights = np.where(members, prior[sets.indices], 0.0)
        mass, total = sets.row_sums(confidences * members), sets.row_sums(weights)
        shared[members] = (weights * (mass / np.where(total > 0, total, 1.0))[rows])[members]
    return shared


class _Pairs:
    """How often two labels are in a set together.

    Parameters
    ----------
    sets : CandidateSets
        The candidate sets. Those with all labels say nothing, and are left out if others are left.
    confidences : array, optional
        Confidences in the candidates. With them, the rows of a label are those that were decided
        for it; without them, those with it as a candidate.
    """

    def __init__(self, sets: CandidateSets, confidences: Floats | None = None) -> None:
        self.classes, q = sets.classes, len(sets.classes)
        rows = np.flatnonzero(sets.sizes < q)
        rows = rows if len(rows) else np.arange(len(sets))
        rows = rows[:: -(-len(rows) // MAX_ROWS)]
        self.sets = sets[rows]
        candidates = decided = self.sets.to_matrix()
        if confidences is not None:
            values = self.sets.entries(sets.to_matrix(confidences)[rows])
            best = self.sets.indices[self.sets.row_argmax(values)]
            ends = np.arange(len(rows) + 1)
            decided = sparse.csr_array((np.ones(len(rows)), best, ends), shape=self.sets.shape)
        self.counts = (decided.T @ candidates).tocsr()
        counts = self.counts.tocoo()
        off = counts.row != counts.col
        self.label, self.other = counts.row[off], counts.col[off]
        self.both = counts.data[off].astype(np.float64)
        self.n_rows = np.bincount(decided.indices, minlength=q)
        self.single = np.bincount(self.sets[self.sets.sizes == 1].indices, minlength=q)
        self.as_candidate = np.bincount(self.sets.indices, minlength=q)

    def everywhere(self) -> list[int]:
        """Return the labels in almost every set but their own, and in more of them than others."""
        others = len(self.sets) - self.single
        inside = (self.as_candidate - self.single).astype(np.float64)
        low, _ = _interval(inside, others)
        absent = 1 - inside / np.maximum(others, 1)
        found = (absent <= 1 - ALMOST_ALWAYS) & (1 - low < np.median(absent) / 5)
        return np.flatnonzero(found).tolist()

    def dependent(self) -> set[tuple[int, int]]:
        """Return the labels that are never a candidate without another one, and that one."""
        always = self.both == self.n_rows[self.label]
        label, other, both = self.label[always], self.other[always], self.both[always]
        rows = self.n_rows[label]
        low, _ = _interval(both, rows, tries=len(self.classes) * (len(self.classes) - 1))
        elsewhere = (self.as_candidate[other] - both) / np.maximum(len(self.sets) - rows, 1)
        found = low > np.maximum(0.5, elsewhere)
        return {*zip(label[found].tolist(), other[found].tolist(), strict=True)}

    def never_apart(self) -> set[tuple[int, int]]:
        """Return the pairs that were not seen apart in the rows that were decided for either."""
        first, second = np.minimum(self.label, self.other), np.maximum(self.label, self.other)
        rows = self.n_rows[first] + self.n_rows[second]
        found = (rows >= MIN_ROWS) & (self.single[first] == 0) & (self.single[second] == 0)
        for label, other in ((first, second), (second, first)):
            both = np.asarray(self.counts[label, other]).ravel()
            outside = self.as_candidate[other] - self.n_rows[other] - both
            elsewhere = outside / np.maximum(len(self.sets) - rows, 1)
            most = np.minimum(1 - TOGETHER, (1 - elsewhere) / 2)
            found &= self.n_rows[label] - both <= most * np.maximum(self.n_rows[label], rows / 2)
        return {*zip(first[found].tolist(), second[found].tolist(), strict=True)}

    def ambiguity(self) -> list[Ambiguity]:
        """Return for each label the one that occurs together with it most often."""
        labels = as_objects(self.classes)
        order = np.lexsort((-self.both, self.label))
        best = order[np.unique(self.label[order], return_index=True)[1]]
        label, both = self.label[best], self.both[best]
        rows = self.n_rows[label]
        low, high = _interval(both, rows, tries=len(labels) - 1)
        columns = (label, self.other[best], both / rows, low, high, rows)
        found = zip(*(column.tolist() for column in columns), strict=True)
        return [Ambiguity(labels[a], labels[b], *figures) for a, b, *figures in found]


def _interval(hits: Floats, trials: NDArray[np.int64], tries: int = 1) -> tuple[Floats, Floats]:
    """Compute the interval of Clopper and Pearson, corrected for the number of shares looked at."""
    tail = (1 - LEVEL) / 2 / max(tries, 1)
    low = np.where(hits > 0, beta.ppf(tail, hits, trials - hits + 1), 0.0)
    high = np.where(hits < trials, beta.ppf(1 - tail, hits + 1, trials - hits), 1.0)
    return low, high


_ADVICE = {
    "everywhere": (
        "It fits nearly every row, so the sets can't show how often it is right, and confidences "
        "for or against it can't be relied on.",
        "Remove it from the sets if it is never right; otherwise label some rows by hand.",
    ),
    "together": (
        "The sets can't show which of them is right, so confidences in them are the prior's: their "
        "joint confidence, shared out evenly.",
        "Label some rows of each by hand, give weights to the candidates, or merge the labels.",
    ),
    "dependent": (
        "The sets don't rule out that {1} is right in all of them, so confidences in {0} rest on "
        "an assumption.",
        "Label some rows of {0} by hand.",
    ),
    "features": (
        "Confidences say hardly more than how frequent the labels are.",
        "Check that the rows of X and y belong together and that features are on comparable "
        "scales, or add features.",
    ),
}
"""What a finding of each kind means, and what to do."""


def _finding(kind: Kind, labels: Sequence[Label], rows: Codes, what: str) -> Finding:
    meaning, remedy = (text.format(*map(repr, labels)) for text in _ADVICE[kind])
    return Finding(kind, tuple(labels), rows, what, meaning, remedy)


def _labels(sets: CandidateSets, codes: Iterable[int]) -> list[Label]:
    return [as_objects(sets.classes)[code] for code in codes]


def _number_inside(sets: CandidateSets, codes: Sequence[int] | Codes) -> NDArray[np.int64]:
    """Count how many of some labels are candidates of each row."""
    return sets.row_sums(np.isin(sets.indices, codes).astype(np.int64))


def _everywhere(sets: CandidateSets, code: int) -> Finding:
    inside = _number_inside(sets, [code]) > 0
    others = ~(inside & (sets.sizes == 1))
    (label,) = _labels(sets, [code])
    what = f"{label!r} is a candidate in {np.mean(inside[others]):.0%} of the sets of other labels."
    return _finding("everywhere", [label], np.flatnonzero(inside & others), what)


def _together(sets: CandidateSets, codes: Codes) -> Finding:
    labels, inside = _labels(sets, codes), _number_inside(sets, codes)
    rows = np.flatnonzero(inside > 1)
    what = f"the rows that one of them was found for have the other as well ({len(rows)} rows)."
    if (inside[inside > 0] == len(codes)).all():
        what = f"the {len(rows)} rows with one of them have all of them."
    *others, last = map(repr, labels)
    shown = f"{', '.join(others)} and {last} never come apart: {what}"
    return _finding("together", labels, rows, shown)


def _dependent(sets: CandidateSets, code: int, other: int) -> Finding:
    labels = _labels(sets, [code, other])
    rows = np.flatnonzero(_number_inside(sets, [code]))
    what = f"{labels[0]!r} is never a candidate without {labels[1]!r} ({len(rows)} rows)."
    return _finding("dependent", labels, rows, what)


def come_apart(sets: CandidateSets, labels: tuple[Label, ...]) -> bool:
    """Return whether some set, or the evidence in it, tells some of the labels apart."""
    members = np.isin(sets.indices, lookup_codes(list(labels), sets.classes))
    inside = sets.row_sums(members.astype(np.float64))
    return sets.weights is not None or bool(((inside > 0) & (inside < len(labels))).any())


def _useless_features(sets: CandidateSets, X: MatrixLike) -> Finding | None:
    """Ask trees that were not grown on a row how likely its set is."""
    from sklearn.ensemble import RandomForestRegressor  # it takes a while to import

    rows = np.arange(len(sets))[:: -(-len(sets) // FOREST_ROWS)]
    if len(rows) < MIN_FEATURE_ROWS:
        return None
    sample = sets[rows]
    forest = RandomForestRegressor(
        min_samples_leaf=3, max_features="sqrt", oob_score=True, random_state=0
    )
    forest.fit(_safe_indexing(X, rows), sample.to_matrix(sample.initial_confidences()).toarray())
    answers = forest.oob_prediction_.reshape(sample.shape)
    return features_finding(sample, answers, np.ones(len(rows)))


def features_finding(sets: CandidateSets, scores: Floats, weights: Floats) -> Finding | None:
    """Return a finding if held-out scores make sets no more likely than label frequencies do.

    Nothing is found where labels rest on something else: on weights of candidates, or on sets of
    one label each; nor where a label in every set makes all sets likely without features.

    Parameters
    ----------
    sets : CandidateSets
        The candidate sets.
    scores : array of shape (n, q)
        What models that have not seen the row predict for the classes.
    weights : array of shape (n,)
        How much each row counts.
    """
    resting_on_features = sets.weights is None and (sets.sizes > 1).any()
    if len(sets) < MIN_FEATURE_ROWS or not resting_on_features or _Pairs(sets).everywhere():
        return None
    shares = sets.expected_counts(weights) / weights.sum()
    everyone = np.broadcast_to(shares, scores.shape)
    found = np.array([tempered_likelihoods(sets, P, weights) for P in (scores, everyone)])
    gains = found[0] - found[1]
    gain = np.average(gains, weights=weights)
    error = np.sqrt(np.average((gains - gain) ** 2, weights=weights) / len(gains))
    if gain > error:
        return None
    with_features, without = np.average(found, axis=1, weights=weights)
    what = (
        "The features do not help by more than chance: with them the log-likelihood of held-out "
        f"candidate sets is {with_features:.3f} a row, without them {without:.3f}."
    )
    return _finding("features", (), np.arange(len(sets)), what)


def tempered_likelihoods(
    sets: CandidateSets, scores: Floats, weights: Floats, evidence: Floats | None = None
) -> Floats:
    """Return the log-likelihood of each set, at the temperature under which all are likeliest.

    The scores are those of models that have not seen the row. Evidence says how likely a set is
    under each of its candidates, see `evidence_of_sets`; by default they are all alike.
    """
    logits = log_scores(scores)
    temperature = fit_temperature(sets, logits, weights)
    if evidence is None:
        return set_likelihoods(sets, logits, temperature)
    return np.asarray(np.log(weighed_sums(sets, probabilities(logits, temperature), evidence)))


def weighed_sums(sets: CandidateSets, shares: Floats, evidence: Floats) -> Floats:
    """Sum the probabilities of each row's candidates, times the evidence for them."""
    return sets.row_sums(sets.entries(shares) * evidence[sets.indices])


def evidence_of_sets(sets: CandidateSets, shares: Floats) -> Floats:
    r"""Return how likely candidate sets are under each of their candidates, up to a factor.

    Sets are usually predicted best by predicting labels. Where a label is in almost every set,
    predicting nothing but that label makes all sets certain. There a set has to be explained as a
    whole: if label k is a false candidate with probability :math:`f_k`, independently of others,
    then :math:`P(S \mid j) \propto 1 / f_j` for its candidates j. So the label that is always
    there explains nothing, and one that is seldom false explains much.

    Parameters
    ----------
    sets : CandidateSets
        The candidate sets.
    shares : array of shape (n, q)
        Probabilities of the classes, from models that have not seen the row.

    Returns
    -------
    evidence : array of shape (q,)
        At most one; all ones where no label is in almost every set, or where there are two labels:
        then the other one would be certain.
    """
    counts = np.bincount(sets.indices, minlength=sets.shape[1])
    if sets.shape[1] < 3 or not _Pairs(sets).everywhere():
        return np.ones(sets.shape[1])
    right = np.bincount(sets.indices, sets.row_normalized(sets.entries(shares)), sets.shape[1])
    false = (counts - right) / np.maximum(len(sets) - right, 1)
    false = false.clip(1 / len(sets), 1)
    return np.asarray(false.min() / false)
