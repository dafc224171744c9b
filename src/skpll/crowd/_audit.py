r"""The accuracy of labels, from a random sample that a person has decided.

Rows are sorted by their confidence and cut into strata of equal size; from each the same number of
rows is drawn without replacement. With :math:`k_h` of :math:`n_h` decided rows right in stratum h,
which is a share :math:`W_h` of all rows, the accuracy is estimated by :math:`t = \sum_h W_h k_h /
n_h`.

The interval inverts a test. If the accuracy is :math:`\theta`, stratum h is taken to have
:math:`p_h(\theta) = \mathrm{expit}(\mathrm{logit}\,\tilde p_h + \delta)`, where :math:`\tilde p_h`
is its own share of right labels drawn a little to the overall share, and :math:`\delta` makes
:math:`\sum_h W_h p_h = \theta`. Then :math:`k_h` is hypergeometric, and the distribution of t
follows by convolution. The p-value of :math:`\theta` is the probability of all results that are
less likely than t, and half of that of results as likely as t (Sterne's test with mid-p); the
interval reaches from the least to the largest :math:`\theta` with a p-value of at least 5 %. Such
intervals hold what they promise on average, where those of Clopper and Pearson are wider than
needed, and their tails need not be alike: close to 1 nearly all surprising results lie on one side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from ._votes import Floats

MAX_STRATA = 5
MIN_ROWS_PER_STRATUM = 10

_MIN_CELLS = 800  # of the lattice on which the distribution of t is computed
_PRIOR_ROWS = 1.0  # that the overall share counts for in the share of a stratum
_EDGE = 1e-3  # confidences are kept this far from 0 and 1

_OUTER = 0.1  # p-values are below the error where one tail is below this share of it
_SCANNED = 40  # accuracies between these two limits whose p-values are computed
_PRECISION = 1e-5  # of the limits
_SAME = 1e-7  # relative difference of results that are equally likely


@dataclass(frozen=True)
class AuditSample:
    """Rows to decide, drawn at random from strata of equal confidence.

    Parameters
    ----------
    rows : int array of shape (n,)
        The rows, ascending.
    stratum : int array of shape (n,)
        The stratum of each; 0 has the least confident rows.
    weight : array of shape (n,)
        The number of rows that each stands for.

    Examples
    --------
    >>> from skpll.crowd import draw_audit
    >>> draw_audit([0.5, 0.6, 0.9, 1.0], 4).rows.tolist()
    [0, 1, 2, 3]
    """

    rows: NDArray[np.intp]
    stratum: NDArray[np.intp]
    weight: Floats


@dataclass(frozen=True)
class AccuracyEstimate:
    """The accuracy of labels.

    Parameters
    ----------
    accuracy : float
        The estimate.
    low, high : float
        The limits of its interval.
    level : float
        The share of such intervals that contain the accuracy.
    n_decided : int
        The number of rows that were decided.

    Examples
    --------
    >>> from skpll.crowd import estimate_accuracy
    >>> estimate_accuracy([True] * 9 + [False]).n_decided
    10
    """

    accuracy: float
    low: float
    high: float
    level: float
    n_decided: int


@dataclass(frozen=True)
class ReviewPlan:
    """How many rows to review for a target accuracy, the least confident ones first.

    Parameters
    ----------
    n_rows : int
        The number of rows to review.
    below : float
        They are the rows with a confidence below this.
    accuracy : float
        The accuracy that is expected then, if every reviewed row is right.

    Examples
    --------
    >>> from skpll.crowd import plan_review
    >>> plan = plan_review([0.5, 0.7, 0.9, 1.0], [0.5, 0.7, 0.9, 1.0], 0.9)
    >>> plan.n_rows, plan.below
    (1, 0.7)
    """

    n_rows: int
    below: float
    accuracy: float


def draw_audit(confidence: ArrayLike, n_rows: int, *, seed: int = 0) -> AuditSample:
    """Draw rows to decide, at random within strata of the confidence.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        The confidence in the label of each row.
    n_rows : int
        The number of rows to draw; all, if there are fewer.
    seed : int, default=0
        The seed of the draw.

    Returns
    -------
    AuditSample

    Examples
    --------
    >>> from skpll.crowd import draw_audit
    >>> sample = draw_audit([0.5, 0.6, 0.9, 0.9, 1.0, 1.0, 1.0, 1.0], 4)
    >>> sample.weight.tolist()
    [2.0, 2.0, 2.0, 2.0]
    """
    values = np.asarray(confidence, dtype=np.float64)
    if not len(values):
        raise ValueError("confidence: there are no rows.")
    wrong = ~((values >= 0) & (values <= 1 + 1e-9))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"confidence: row {row + 1} has {values[row]}; a confidence is between 0 and 1."
        )
    if n_rows < 1:
        raise ValueError(f"n_rows: {n_rows} rows are no sample; give at least 1.")
    rng = np.random.default_rng(seed)
    n_rows = min(n_rows, len(values))
    n_strata = min(max(n_rows // MIN_ROWS_PER_STRATUM, 1), MAX_STRATA)
    mixed = rng.permutation(len(values))  # equal confidences fall to strata by chance
    strata = np.array_split(mixed[np.argsort(values[mixed], kind="stable")], n_strata)
    sizes = rng.permutation([len(part) for part in np.array_split(np.arange(n_rows), n_strata)])
    sizes = np.minimum(sizes, [len(rows) for rows in strata])
    drawn = [rng.choice(r, k, replace=False) for r, k in zip(strata, sizes, strict=True)]
    rows = np.concatenate(drawn)
    stratum = np.repeat(np.arange(n_strata), sizes)
    weight = np.repeat([len(r) / max(k, 1) for r, k in zip(strata, sizes, strict=True)], sizes)
    order = np.argsort(rows)
    return AuditSample(rows[order], stratum[order], weight[order])


def estimate_accuracy(
    right: ArrayLike,
    stratum: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> AccuracyEstimate:
    """Estimate an accuracy, with an interval, from decided rows of a random sample.

    Parameters
    ----------
    right : array-like of shape (n,)
        Whether the label of each decided row is right.
    stratum : array-like of shape (n,), optional
        The stratum of each decided row, from 0; one for all by default.
    sizes : array-like of shape (number of strata,), optional
        The number of rows in each stratum, decided or not; by default there is no limit.
    level : float, default=0.95
        The share of such intervals that should contain the accuracy.

    Returns
    -------
    AccuracyEstimate

    Examples
    --------
    >>> from skpll.crowd import estimate_accuracy
    >>> found = estimate_accuracy([True] * 45 + [False] * 5)
    >>> f"{found.accuracy:.2f}, between {found.low:.2f} and {found.high:.2f}"
    '0.90, between 0.79 and 0.95'
    """
    hits = np.asarray(right, dtype=bool)
    if not len(hits):
        raise ValueError("right: no row is decided; decide some first.")
    place = np.zeros(len(hits), np.intp) if stratum is None else np.asarray(stratum, np.intp)
    n_strata = int(place.max()) + 1 if sizes is None else len(np.asarray(sizes))
    drawn = np.bincount(place, minlength=n_strata)
    if sizes is None:
        totals = drawn * 1_000_000
    else:
        totals = np.maximum(np.rint(np.asarray(sizes, np.float64)).astype(np.int64), drawn)
    if (drawn == 0).any():
        raise ValueError(
            f"stratum: no row of stratum {int(np.argmin(drawn))} is decided, so the sample does "
            "not stand for all rows; decide at least one row of each."
        )
    counts = np.bincount(place, hits, minlength=n_strata)
    test = StratifiedTest(counts.astype(np.int64), drawn, totals)
    low, high = test.limits(1 - level)
    return AccuracyEstimate(test.estimate, low, high, level, len(hits))


def recalibrated(
    confidence: ArrayLike, decided: ArrayLike, right: ArrayLike, weight: ArrayLike | None = None
) -> Floats:
    r"""Correct confidences by decided rows.

    The probability that a label with confidence c is right is taken to be
    :math:`\mathrm{expit}(a + b\,\mathrm{logit}\,c)` with :math:`b \ge 0`, fitted to the decided
    rows with weak priors (a around 0, b around 1/2, since confidences are usually too extreme).

    Parameters
    ----------
    confidence : array-like of shape (n,)
        The confidences to correct.
    decided : array-like of shape (m,)
        The confidences of the decided rows.
    right : array-like of shape (m,)
        Whether their labels are right.
    weight : array-like of shape (m,), optional
        The number of rows that each stands for.

    Returns
    -------
    corrected : array of shape (n,)

    Examples
    --------
    >>> from skpll.crowd import recalibrated
    >>> right = [True, False] * 10
    >>> corrected = recalibrated([0.99], [0.99] * 20, right)
    >>> f"{corrected[0]:.1f}"
    '0.5'
    """
    z, y = _bounded_logit(decided), np.asarray(right, dtype=np.float64)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    w = w * len(w) / w.sum()

    def loss(parameters: Floats) -> tuple[float, Floats]:
        a, b = parameters
        logits = a + b * z
        residuals = w * (special.expit(logits) - y)
        value = (w * (np.logaddexp(0, logits) - y * logits)).sum()
        value += a**2 / 18 + (b - 0.5) ** 2 / 0.5
        slope = np.array([residuals.sum() + a / 9, (residuals * z).sum() + (b - 0.5) / 0.25])
        return float(value), slope

    start = np.array([0.0, 0.5])
    found = optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[(None, None), (0, None)]
    )
    return np.asarray(special.expit(found.x[0] + found.x[1] * _bounded_logit(confidence)))


def plan_review(confidence: ArrayLike, corrected: ArrayLike, target: float) -> ReviewPlan:
    """Return how many rows to review, the least confident ones first, to reach an accuracy.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        The confidence in the label of each row.
    corrected : array-like of shape (n,)
        The probability that it is right, see `recalibrated`.
    target : float
        The accuracy to reach, if every reviewed row is right afterwards.

    Returns
    -------
    ReviewPlan

    Examples
    --------
    >>> from skpll.crowd import plan_review
    >>> plan_review([0.6, 0.8, 1.0], [0.6, 0.8, 1.0], 0.9).n_rows
    1
    """
    if not 0 < target <= 1:
        raise ValueError(f"target: {target} is not an accuracy; give a number up to 1.")
    values, chance = np.asarray(confidence, np.float64), np.asarray(corrected, np.float64)
    order = np.argsort(values, kind="stable")
    gained = np.concatenate(([0.0], np.cumsum(1 - chance[order])))
    after = (chance.sum() + gained) / len(values)
    n_rows = int(np.argmax(after >= target - 1e-12)) if after[-1] >= target - 1e-12 else len(order)
    below = float(values[order[n_rows]]) if n_rows < len(order) else float("inf")
    return ReviewPlan(n_rows, below, float(after[n_rows]))


@dataclass(frozen=True)
class StratifiedTest:
    """The distribution of the stratified estimate for a given accuracy."""

    counts: NDArray[np.int64]
    drawn: NDArray[np.int64]
    totals: NDArray[np.int64]

    @property
    def shares(self) -> Floats:
        return np.asarray(self.totals / self.totals.sum())

    @property
    def estimate(self) -> float:
        return float((self.shares * self.counts / self.drawn).sum())

    def limits(self, error: float) -> tuple[float, float]:
        """Return the least and the largest accuracy whose p-value is not below `error`."""
        estimate = self.estimate
        if (self.totals == self.drawn).all():
            return estimate, estimate
        low = 0.0 if estimate == 0 else self._limit(error, 0.0)
        high = 1.0 if estimate == 1 else self._limit(error, 1.0)
        return low, high

    def p_value(self, accuracy: float) -> float:
        """Return the probability of results that are less likely than the one seen.

        Results that are as likely count half.

        Parameters
        ----------
        accuracy : float
            The accuracy of all labels.

        Returns
        -------
        p_value : float
        """
        law, near, seen = self._law(accuracy)
        same = np.isclose(near, near[seen], rtol=_SAME, atol=0)
        return float(law[(near < near[seen]) & ~same].sum() + law[same].sum() / 2)

    def _limit(self, error: float, end: float) -> float:
        """Return the accuracy farthest towards `end` whose p-value is not below `error`."""
        estimate = self.estimate
        inner = self._tail_limit(error, estimate, end)  # the p-value is above the tail up to here
        outer = self._tail_limit(error * _OUTER, inner, end)
        if inner == outer:
            return inner
        steps = np.linspace(outer, inner, _SCANNED)
        place = next((i for i, at in enumerate(steps) if self.p_value(at) >= error), _SCANNED - 1)
        if place == 0:
            return float(outer)
        refused, accepted = float(steps[place - 1]), float(steps[place])
        while abs(refused - accepted) > _PRECISION:
            middle = (refused + accepted) / 2
            if self.p_value(middle) >= error:
                accepted = middle
            else:
                refused = middle
        return accepted

    def _tail_limit(self, tail: float, start: float, end: float) -> float:
        """Return the accuracy where a result so far from `end`, or farther, has this probability.

        The result that was seen counts half.
        """

        def excess(accuracy: float) -> float:
            law, _, seen = self._law(accuracy)
            beyond = law[:seen].sum() if end > start else law[seen + 1 :].sum()
            return float(beyond + law[seen] / 2) - tail

        if excess(start) <= 0:
            return start
        return float(optimize.brentq(excess, start, end, xtol=_PRECISION))

    def _law(self, accuracy: float) -> tuple[Floats, Floats, int]:
        """Return the distribution of the estimate, on a lattice, for an accuracy of all labels.

        With it come the same probabilities, smoothed over results that differ by less than one
        row in a sample without strata, which tell likely results from unlikely ones where strata
        differ in size, and the place of the result that was seen.
        """
        n = int(self.drawn.sum())
        per_row = max(-(-_MIN_CELLS // n), 8)
        cells = n * per_row
        chances = self._stratum_chances(accuracy)
        law, seen = np.ones(1), 0
        for h, share in enumerate(self.shares):
            steps = np.rint(cells * share * np.arange(self.drawn[h] + 1) / self.drawn[h])
            steps = steps.astype(np.int64)
            seen += int(steps[self.counts[h]])
            own = np.zeros(steps[-1] + 1)
            np.add.at(own, steps, _counts_law(self.totals[h], chances[h], self.drawn[h]))
            law = np.convolve(law, own)
        near = np.convolve(law, 1 - np.abs(np.arange(1 - per_row, per_row)) / per_row)
        return law, near[per_row - 1 : per_row - 1 + len(law)], seen

    def _stratum_chances(self, accuracy: float) -> Floats:
        """Return the accuracy of each stratum if that of all rows is given."""
        overall = (self.counts.sum() + 0.5) / (self.drawn.sum() + 1)
        own = (self.counts + _PRIOR_ROWS * overall) / (self.drawn + _PRIOR_ROWS)
        return moved(own, accuracy, self.shares)


def moved(chances: Floats, mean: float, shares: Floats | None = None) -> Floats:
    """Move probabilities alike, in logits, until their mean is the given one.

    Parameters
    ----------
    chances : array of shape (n,)
        The probabilities.
    mean : float
        Their mean afterwards.
    shares : array of shape (n,), optional
        How much each counts in it.

    Returns
    -------
    moved : array of shape (n,)
    """
    mean = min(max(mean, 1e-9), 1 - 1e-9)
    logits = special.logit(np.clip(chances, 1e-6, 1 - 1e-6))

    def gap(shift: float) -> float:
        return float(np.average(special.expit(logits + shift), weights=shares)) - mean

    return np.asarray(special.expit(logits + optimize.brentq(gap, -60, 60, xtol=1e-7)))


def _counts_law(total: int, chance: float, drawn: int) -> Floats:
    """Return the probabilities of 0 … `drawn` right rows in a sample without replacement."""
    right = chance * total
    lower = min(int(np.floor(right)), total - 1)
    upper = right - lower
    return (1 - upper) * _hypergeometric(total, lower, drawn) + upper * _hypergeometric(
        total, lower + 1, drawn
    )


def _hypergeometric(total: int, right: int, drawn: int) -> Floats:
    """Return the hypergeometric probabilities of 0 … `drawn`; scipy's are slow for one call."""
    k = np.arange(max(0, drawn - (total - right)), min(drawn, right) + 1)
    logs = _log_choose(right, k) + _log_choose(total - right, drawn - k)
    law = np.zeros(drawn + 1)
    law[k] = np.exp(logs - _log_choose(total, np.array(drawn)))
    return law


def _log_choose(n: int, k: NDArray[np.int64]) -> Floats:
    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def _bounded_logit(confidence: ArrayLike) -> Floats:
    values = np.asarray(confidence, dtype=np.float64)
    return np.asarray(special.logit(np.clip(values, _EDGE, 1 - _EDGE)))
