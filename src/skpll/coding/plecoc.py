"""PL-ECOC: candidate sets as a whole, coded by many splits of the labels into two sides."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from math import ceil, log2
from numbers import Real
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from skpll._examples import Examples, Features
from skpll._parameters import COUNT
from skpll._typing import Constraints, Floats

from ._models import BinaryDecomposition, Sides, fit_models_on_one_kernel

COLUMNS_PER_BIT = 30
"""Columns of the code for each bit of the number of labels."""

MAX_OUTPUT = 300.0
"""Larger outputs of a model are cut, so that their exponentials don't overflow."""


@dataclass(eq=False, repr=False)
class PLECOC(BinaryDecomposition):
    r"""Error-correcting output codes for partial labels (PL-ECOC).

    Use it for many classes, with time to train many models.

    No candidate set is ever disambiguated. Each of :math:`L` columns of a coding matrix
    :math:`M \in \{-1, +1\}^{q \times L}` splits the labels into two sides at random. An example
    whose candidates are all on one side is certainly on that side, whichever of them is true, so
    that it can train the two-class model :math:`g_t` of the column; the others take no part in
    it. Columns are drawn until :math:`L` of them have enough examples on each side. The models
    are trusted as far as they agree with the codes on the training examples,

    .. math:: &H_{jt} \propto \frac{|\{i : j \in S_i,\ \operatorname{sign} g_t(x_i) = M_{jt}\}|}
                                  {|\{i : j \in S_i\}|}, \\
              &\sum_t H_{jt} = 1,

    and a new example gets the label whose codeword loses least:

    .. math:: &\hat y = \arg\min_j\ \ell_j(x), \\
              &\ell_j(x) = \sum_t H_{jt} \exp(-M_{jt}\, g_t(x)).

    The scores of `decision_function` are :math:`-\log \ell_j(x)`. The confidence in the candidates
    of a training example falls inversely with their losses. Ties go to the first label. Evidence
    (weights of the candidates) is ignored.

    Parameters
    ----------
    code_length : int, optional
        Number :math:`L` of columns; by default :math:`\lceil 30 \log_2 q \rceil` for :math:`q`
        labels that are candidates: three times as many as in the paper, since random codes of its
        length differ much in accuracy. There are never more columns than splits,
        :math:`2^{q-1} - 1`.
    eligibility : float, default=0.1
        The share of the examples that have to be on each side of a column for it to be eligible.
    min_side : int, default=5
        Where the draws have too few eligible columns, others fill the code: those with the largest
        smaller sides, but at least this many examples on each side (or a tenth of all examples,
        where that is less).
    max_draws : int, default=2000
        How many columns are drawn at most. Where there are no more splits of the labels, each of
        them is looked at.
    <<binary.svm>>
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernel: one over the number of features times the variance of all
        features, or over that number alone (for standardized features the same), or a number.
    <<binary.estimator>>
    random_state : int, RandomState or None, default=0
        Seed of the draws.

    <<Attributes: classes_>>
    code_book_ : int array of shape (q, L)
        The coding matrix; rows of zeros for labels that are no candidate of any example.
    performance_ : array of shape (q, L)
        The weights :math:`H`; rows of zeros for labels that are no candidate of any example.
    estimators_ : list of L classifiers
        The model of each column.
    transduction_ : array of shape (n,)
        The label decided for each training example: the candidate that loses least.
    label_distributions_ : sparse array of shape (n, q)
        The confidence in each candidate of each training example.
    <<n_features_in_, feature_names_in_>>

    References
    ----------
    M.-L. Zhang, F. Yu, C.-Z. Tang: Disambiguation-free partial label learning. IEEE Transactions on
    Knowledge and Data Engineering 29(10), 2017.

    <<example>>
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **BinaryDecomposition._parameter_constraints,
        "code_length": [COUNT, None],
        "eligibility": [Interval(Real, 0, 0.5, closed="both")],
        "min_side": [COUNT],
        "max_draws": [COUNT],
        "random_state": ["random_state"],
    }

    code_length: int | None = None
    _: KW_ONLY
    eligibility: float = 0.1
    min_side: int = 5
    max_draws: int = 2000
    random_state: int | np.random.RandomState | None = 0

    def _fit(self, examples: Examples) -> Floats:
        X, candidates = examples.X, examples.sets
        X = self._learn_offset(X)
        matrix, sizes = candidates.to_matrix(), candidates.sizes
        codes = self._draw_code(matrix, sizes)
        problems = (sides_of(code, matrix, sizes) for code in codes)
        self._models = fit_models_on_one_kernel(self._model(X), X, problems, self.n_jobs)
        self.estimators_ = self._models.estimators
        outputs = self._models.outputs(X)
        self.code_book_ = np.zeros((len(self.classes_), len(codes)), dtype=np.int8)
        self.code_book_[self._seen] = np.where(codes, 1, -1).T
        self.performance_ = np.zeros(self.code_book_.shape)
        self.performance_[self._seen] = _performance(matrix, self.code_book_[self._seen], outputs)
        return 1 / candidates.entries(self._losses(outputs))

    def _class_scores(self, X: Features) -> Floats:
        return -np.log(self._losses(self._models.outputs(self._without_offset(X))))

    def _losses(self, outputs: Floats) -> Floats:
        """Decode the outputs of the models."""
        outputs = np.clip(outputs, -MAX_OUTPUT, MAX_OUTPUT)
        code_book, performance = self.code_book_[self._seen], self.performance_[self._seen]
        on_positive_side = performance * (code_book > 0)
        on_negative_side = performance * (code_book < 0)
        losses = np.exp(-outputs) @ on_positive_side.T + np.exp(outputs) @ on_negative_side.T
        return np.asarray(losses)

    def _draw_code(self, matrix: sparse.csr_array, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Draw columns until enough are eligible; if they never are, fill up with the best others.

        Returns
        -------
        codes : bool array of shape (L, q)
            Which labels are on the positive side of each column.
        """
        n, q = matrix.shape
        splits = count_dichotomies(q)
        wanted = min(self.code_length or ceil(COLUMNS_PER_BIT * log2(q)), splits)
        least = min(self.min_side, ceil(n / 10))
        eligible: list[NDArray[np.bool_]] = []
        others: list[tuple[int, NDArray[np.bool_]]] = []
        for code in draw_dichotomies(q, self.max_draws, check_random_state(self.random_state)):
            smaller_side = min(int(side.sum()) for side in sides_of(code, matrix, sizes))
            if smaller_side >= max(least, self.eligibility * n):
                eligible.append(code)
            elif smaller_side >= least:
                others.append((smaller_side, code))
            if len(eligible) == wanted:
                return np.array(eligible)
        others.sort(key=lambda column: -column[0])
        codes = [*eligible, *(code for _, code in others)][:wanted]
        if splits > self.max_draws or self.code_length is not None or not codes:
            self._report_lack(len(eligible), len(codes), wanted, least)
        return np.array(codes)

    def _report_lack(self, eligible: int, found: int, wanted: int, least: int) -> None:
        """Raise where there is no column at all, and warn where some are not eligible."""
        if not found:
            raise ValueError(
                f"y: in {self.max_draws} draws (max_draws) no split of the labels has {least} "
                "examples on each side (min_side) whose candidates are all there. Lower min_side, "
                "raise max_draws, or use a method that can do with larger candidate sets."
            )
        warnings.warn(
            f"PLECOC: of {wanted} columns, just {eligible} have {self.eligibility:.0%} and at "
            f"least {least} of the examples on each side; {found - eligible} others fill the code. "
            "Raise max_draws, or lower eligibility, min_side or code_length.",
            ConvergenceWarning,
            stacklevel=6,
        )


def _performance(matrix: sparse.csr_array, code_book: NDArray[np.int8], outputs: Floats) -> Floats:
    """Weigh the columns of each label by how often the models agree with its code."""
    counts = matrix.sum(axis=0)[:, np.newaxis]
    positive = matrix.T @ (outputs > 0).astype(np.int64)
    agreements = np.where(code_book > 0, positive, counts - positive)
    agreements = np.where(agreements.any(axis=1, keepdims=True), agreements, 1)
    return agreements / agreements.sum(axis=1, keepdims=True)


def count_dichotomies(q: int) -> int:
    """Count the ways to split q labels into two sides, neither of them empty."""
    return 2 ** (q - 1) - 1


def draw_dichotomies(
    q: int, max_draws: int, random: np.random.RandomState
) -> Iterator[NDArray[np.bool_]]:
    """Draw dichotomies at random, none of them twice.

    A dichotomy and its complement are the same, so the first label is always on the positive
    side. Where there are no more than `max_draws` dichotomies, all of them come, in random order.

    Parameters
    ----------
    q : int
        Number of labels.
    max_draws : int
        Number of draws; one that hits a dichotomy again, or leaves a side empty, is lost.
    random : RandomState
        Source of chance.

    Yields
    ------
    code : bool array of shape (q,)
        Which labels are on the positive side.
    """
    if count_dichotomies(q) <= max_draws:
        for number in random.permutation(count_dichotomies(q)):
            yield np.append(True, number >> np.arange(q - 1) & 1 == 1)
        return
    seen = {np.ones(q, dtype=bool).tobytes()}
    for _ in range(max_draws):
        code = np.append(True, random.uniform(size=q - 1) < 0.5)
        if code.tobytes() not in seen:
            seen.add(code.tobytes())
            yield code


def sides_of(
    code: NDArray[np.bool_], candidates: sparse.csr_array, sizes: NDArray[np.int64]
) -> Sides:
    """Find the examples whose candidates are all on the positive, or all on the negative side.

    Parameters
    ----------
    code : bool array of shape (q,)
        Which labels are on the positive side.
    candidates : sparse array of shape (n, q)
        One for every candidate.
    sizes : int array of shape (n,)
        Number of candidates of each example.

    Returns
    -------
    positive, negative : bool arrays of shape (n,)
        An example with candidates on both sides is in neither.
    """
    on_positive_side = candidates @ code.astype(np.int64)
    return on_positive_side == sizes, on_positive_side == 0
