"""PL-LOO: every example is judged by a ridge regression that has not seen it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

from skpll._examples import Examples, Features, group_numbers
from skpll._iteration import Iterative
from skpll._labels import class_shares
from skpll._threads import threads_for
from skpll.base import MatrixLike, unchanged_on_failure
from skpll.candidates import CandidatesLike
from skpll.diagnosis import features_finding
from skpll.engine.arrays import as_numpy, is_foreign, is_tensor, squarable
from skpll.engine.blocks import Block, Store
from skpll.engine.kernels import KERNELS, KernelMap, median_distance
from skpll.engine.limits import LIMITS, is_large, number_of_landmarks
from skpll.large.dask import is_dask

from ._choice import (
    CHOICE_FOLDS,
    LINEAR_RIDGES,
    RIDGES,
    STRENGTHS,
    WIDTHS,
    HeldOutFits,
    begin,
    choose,
)
from ._elsewhere import Elsewhere, check_no_copies
from ._loop import Loop, Settings, open_if
from ._regression import AnyRidge, KernelRidge, System
from ._repeated import (
    NearCopyWarning,
    by_set,
    come_in_groups,
    look_at_neighbors,
    merge_duplicates,
    n_independent,
    same_sets,
)
from ._set_model import has_set_model
from ._start import in_every_set

__all__ = ["PLLOO"]

Floats = NDArray[np.float64]

CALIBRATION_FOLDS = 5

HALVINGS = 10
"""How often the interval of a power of the scores is halved to find it."""

SET_MODEL = 0.1
"""The usual strength of the model of the sets: candidates are not independent of each other."""

SET_MODEL_OF_CONSTANT_LABELS = 0.5
"""Its strength if a label is in every set: the regression would take it for right everywhere."""


@dataclass(eq=False, repr=False)
class PLLOO(Elsewhere):
    r"""Leave-one-out disambiguation (PL-LOO).

    Use it first: no parameters to set, nothing to compile, and confidences that are calibrated
    where candidates are at random given the label.

    A model that has been trained on a wrong label finds it right. So every example is judged by
    a model that has *not* seen it: a ridge regression of the confidences on the features of a
    kernel, whose leave-one-out predictions :math:`F^\circ_{ij}` have a closed form. The
    confidences start where the regression can fit them best, or from the evidence
    (`CandidateSets.weights`), and are updated in rounds:

    .. math:: Q_{ij} \propto \max(F^\circ_{ij}, \varepsilon)^p \; e_{ij} \;
              P(S_i \mid j)^\omega \; u_j^\tau, \qquad j \in S_i,

    where :math:`e_{ij}` is the likelihood of the evidence, :math:`P(S_i \mid j)` that of the
    candidates of an example of class j, and :math:`u_j` is the scaling under which the classes
    would have as many examples as their candidates suggest. The kernel, its width, the ridge and
    the strength :math:`\tau` are chosen without the truth; the sharpness of the probabilities is
    that under which the candidate sets are most likely, judged by loops that an example took no
    part in.

    Features should be on comparable scales: ``make_pipeline(StandardScaler(), PLLOO())``.

    Parameters
    ----------
    kernel : {"auto", "laplacian", "rbf", "linear"}, default="auto"
        ``"laplacian"`` falls exponentially with the distance, ``"rbf"`` with its square;
        ``"linear"`` takes the features as they are. ``"auto"`` chooses between the first two, for
        dense and sparse features alike.
    gamma : float or "auto", default="auto"
        How fast the kernel falls, with distances in units of their median.
    alpha : float or "auto", default="auto"
        The ridge.
    class_prior : {"candidates"}, array-like, dict or None, default="candidates"
        How many examples of each class are expected: what the candidates and their weights suggest;
        q shares in the order of the sorted labels, or a mapping from label to share; None: no
        expectation.
    prior_strength : float or "auto", default="auto"
        How much the expectation counts, from 0 to 1.
    group_by : {"auto", "candidates"} or None, default="auto"
        Whether examples with the same candidate set are a group, where `fit` is given no groups.
        ``"auto"``: if there are far fewer different sets than draws for each example would give,
        as where all regions of a picture have the labels of the picture. Large data is not
        grouped.
    group_strength : float, default=0.25
        How much it counts that each candidate of a group is expected to be the label of one of its
        examples.
    noise : float or "auto", default=0.0
        The share of the candidate sets that miss the truth; ``"auto"`` estimates it. All classes
        take part in every round then.
    start : {"auto", "convex", "evidence"}, default="auto"
        Where the rounds start: from the confidences that the regression can fit best
        (``"convex"``), or from candidates that are alike up to their weights (``"evidence"``).
        ``"auto"`` is the former for candidates without weights in memory, if no `noise` is
        expected.
    set_model : float or "auto", default="auto"
        How much it counts how often labels are false candidates of each class. ``"auto"`` is 0.1,
        and 0.5 if a label is in every set. Has no effect on candidates with weights, with `noise`,
        on more than 2000 classes and on very large sets.
    power : float, default=1.5
        By how much the predictions are sharpened in a round.
    leave_one_out : bool, default=True
        False asks the regression about examples that it was trained on: what methods that label and
        train in turn do, for comparison.
    n_landmarks : int or "auto", default="auto"
        If there are more than `2 * n_landmarks` examples, the kernel is approximated with
        `n_landmarks` random ones (Nyström). ``"auto"`` is 2500, and 1000 for more than 20 000
        examples.
    max_iter : int, default=15
        Largest number of rounds.
    tol : float, default=1e-3
        Stop when less than this share of the confidence moves in a round.
    random_state : int, RandomState or None, default=0
        Draws landmarks and folds.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : array of shape (q,)
        The labels, sorted.
    <<loop>>
    kernel_, gamma_, alpha_, prior_strength_ : str and floats
        The parameters in use.
    group_by_ : {"candidates"} or None
        Whether examples with the same candidate set are a group.
    calibrated_by_ : {"rows", "sets"}
        Whether the temperature was found by held-out rows, or by held-out candidate sets, where
        features decide the sets.
    temperature_ : float
        The scores to the power of ``1 / temperature_`` are the probabilities: above one flattens
        them.
    noise_ : float
        The share of the sets that miss the truth, given or estimated.
    missing_ : array of shape (n,)
        The confidence that the truth is none of the candidates; zero without `noise`, and with it
        NaN for examples of weight zero.
    inseparable_ : list of tuple
        Labels that never come apart, see `skpll.diagnose`: confidences and probabilities share out
        by the prior what they have together. Not looked for in Dask collections.
    search_ : Choice
        What was tried, and how well it did.

    Notes
    -----
    Examples that agree in features, candidates and group are merged: two copies would vouch for
    each other. A fit on n examples with m features of the kernel takes O(n m²) once, and in each
    round O(n m) times the mean number of candidates. Nothing is compiled.

    More than 50 000 examples (and than twenty times `n_landmarks`) are worked on in blocks: copies
    are not merged, the temperature follows from the leave-one-out predictions of 2 000 of them, and
    the rounds start from the evidence.

    References
    ----------
    The developers of skpll: Leave-one-out disambiguation. A method of this package, described in
    its documentation, 2026.

    Examples
    --------
    >>> from skpll import PLLOO
    >>> X = [[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]]
    >>> S = [{"a"}, {"a", "b"}, {"a", "b"}, {"b"}, {"a", "b"}, {"b"}]
    >>> model = PLLOO().fit(X, S)
    >>> model.transduction_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> model.predict([[0.05], [1.05]]).tolist()
    ['a', 'b']
    """

    accepts_sparse = calibrated = diagnosed = weighs_candidates = True
    found_parameters = ("kernel", "gamma", "alpha", "prior_strength")

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({"auto", "linear", *KERNELS})],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "class_prior": [StrOptions({"candidates"}), "array-like", dict, None],
        "prior_strength": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "group_by": [StrOptions({"auto", "candidates"}), None],
        "group_strength": [Interval(Real, 0, 1, closed="both")],
        "noise": [Interval(Real, 0, 0.5, closed="both"), StrOptions({"auto"})],
        "start": [StrOptions({"auto", "convex", "evidence"})],
        "set_model": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "power": [Interval(Real, 0, None, closed="neither")],
        "leave_one_out": ["boolean"],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "random_state": ["random_state"],
        **Iterative.parameter_constraints,
    }

    _: KW_ONLY
    kernel: Literal["auto", "laplacian", "rbf", "linear"] = "auto"
    gamma: float | Literal["auto"] = "auto"
    alpha: float | Literal["auto"] = "auto"
    class_prior: Literal["candidates"] | ArrayLike | Mapping[Any, float] | None = "candidates"
    prior_strength: float | Literal["auto"] = "auto"
    group_by: Literal["auto", "candidates"] | None = "auto"
    group_strength: float = 0.25
    noise: float | Literal["auto"] = 0.0
    start: Literal["auto", "convex", "evidence"] = "auto"
    set_model: float | Literal["auto"] = "auto"
    power: float = 1.5
    leave_one_out: bool = True
    n_landmarks: int | Literal["auto"] = "auto"
    max_iter: int = 15
    tol: float = 1e-3
    random_state: int | np.random.RandomState | None = 0
    verbose: int = 0

    def fit(
        self,
        X: MatrixLike,
        y: CandidatesLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        copies: ArrayLike | None = None,
    ) -> Self:
        """Learn from examples and their candidate labels.

        An interrupt (Ctrl-C) ends the rounds early with a warning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features; PyTorch tensors and Dask collections, too.
        y : candidate sets of n examples
            Any format of `skpll.as_candidates`; for a Dask collection, also a collection with the
            same partitions.
        <<rows>>
        groups : array-like of shape (n,), optional
            Examples that came together, such as the regions of a picture: each candidate of a
            group is expected to be the label of an example in it.
        copies : array-like of shape (n,), optional
            The same value for near copies of an example, such as pictures of one scene or
            augmented rows. An example is judged by a model that has seen none of its copies. By
            default every example stands for itself. For examples in memory only.

        Returns
        -------
        self
        """
        with unchanged_on_failure(self):
            self._learned = self._waiting = None
            if is_dask(X):
                check_no_copies(copies)
                return self._fit_on_cluster(X, y, sample_weight, groups)
            examples = self._checked(X, y, sample_weight, groups, copies)
            return self._learn(examples)._bring_to(X)

    def _checked(
        self,
        X: MatrixLike,
        y: CandidatesLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        copies: ArrayLike | None = None,
        reset: bool = True,
    ) -> Examples:
        """Validate the arguments of `fit`; tensors stay on their device where they are large."""
        X, sets = self._validate_training_data(X, y, reset=reset)
        keeps_place = is_tensor(X) and is_large(len(sets), self.n_landmarks)
        X = X if keeps_place else squarable(as_numpy(X))
        weights = _check_sample_weight(
            as_numpy(sample_weight) if is_foreign(sample_weight) else sample_weight,
            np.broadcast_to(0.0, X.shape),
            dtype=np.float64,
            ensure_non_negative=True,
        )
        examples = Examples(X, sets, weights)
        if groups is not None:
            examples = replace(examples, groups=group_numbers(as_numpy(groups), sets))
        if copies is not None:
            examples = replace(examples, copies=group_numbers(as_numpy(copies), sets, "copies"))
        return examples

    def _fit(self, examples: Examples, keep: bool = False) -> Floats:
        self.calibrated_by_ = "rows"
        if is_large(len(examples), self.n_landmarks):
            return self._fit_in_blocks(examples, keep)
        random_state = check_random_state(self.random_state)
        merged, where = merge_duplicates(examples)
        n, landmarks = len(merged), number_of_landmarks(len(merged), self.n_landmarks)
        self.group_by_ = self._found_groups(merged)
        merged = self._grouped(merged)
        if merged.copies is None:
            self._look_for_copies(merged, where)
        with threads_for(float(n) * min(n, 2 * landmarks) ** 2):
            ridge, loop = self._solved(Block.of(merged), merged, examples.X, random_state)
            confidences = self._calibrated(ridge, loop, merged, random_state)
        self._keep(ridge, loop, examples.weights.sum() / n, keep)
        confidences = self._on_given(loop, confidences)
        self.missing_ = self.missing_[where]
        return confidences[merged.sets.places(where)]

    def _found_groups(self, examples: Examples) -> Literal["candidates"] | None:
        """Return whether examples with the same set are a group."""
        if self.group_by != "auto":
            return self.group_by
        if self.noise or examples.groups is not None or examples.sets.weights is not None:
            return None
        sets = examples.sets
        if examples.copies is not None:  # the set of each original counts once
            sets = sets[np.sort(np.unique(examples.copies, return_index=True)[1])]
        return "candidates" if come_in_groups(sets, check_random_state(0)) else None

    def _grouped(self, examples: Examples) -> Examples:
        if examples.groups is None and self.group_by_ == "candidates":
            return replace(examples, groups=same_sets(examples.sets))
        return examples

    def _look_for_copies(self, merged: Examples, where: NDArray[np.intp]) -> None:
        """Find out whether features decide sets, and warn if most examples have near copies."""
        found = look_at_neighbors(merged, same_sets(merged.sets), check_random_state(0))
        if found is None:
            return
        if found.decide_sets:
            self.calibrated_by_ = "sets"
        if found.are_copies:
            first, second = sorted(int(np.argmax(where == each)) for each in found.pair)
            warnings.warn(
                "X: most rows with several candidates have a near copy with the same candidates, "
                f"such as rows {first} and {second}. Copies vouch for each other, so confidences "
                "are too high; pass copies= to fit, with the same value for the copies of one "
                "example.",
                NearCopyWarning,
                stacklevel=4,
            )

    def _solved(
        self, store: Store, sample: Examples, X: Features, random_state: np.random.RandomState
    ) -> tuple[AnyRidge, Loop]:
        """Choose the parameters on a sample, and go through the rounds on all examples."""
        in_memory, settings = isinstance(store, Block), self._settings(store, sample)
        strengths = STRENGTHS if self.prior_strength == "auto" else (float(self.prior_strength),)
        if self.class_prior is None or (sample.sets.sizes == 1).all():
            strengths = (0.0,)
        if self.noise or not has_set_model(Block.of(sample)):
            strengths = strengths[:1]  # nothing to tell them apart by
        ridges = LINEAR_RIDGES if self.kernel == "linear" and in_memory else RIDGES
        alphas = ridges if self.alpha == "auto" else (float(self.alpha),)
        kernels = KERNELS if self.kernel == "auto" else (self.kernel,)
        widths = {name: WIDTHS[name] for name in kernels}
        if self.gamma != "auto":
            widths = dict.fromkeys(kernels, (float(self.gamma),))
        self._unit = median_distance(as_numpy(sample.X), random_state)
        fits = HeldOutFits(
            settings, CHOICE_FOLDS, LIMITS.choice_landmarks, LIMITS.choice_rows, random_state
        )
        found = self.search_ = choose(fits, sample, self._unit, widths, alphas, strengths)
        self.kernel_, self.gamma_ = found.kernel, found.gamma
        self.alpha_, self.prior_strength_ = found.alpha, found.strength
        self.temperature_ = 1.0
        kernel = KernelMap(self.kernel_, self.gamma_, self._unit)
        landmarks = number_of_landmarks(store.shape[0], self.n_landmarks)
        system = System.of(open_if(self.noise, store), kernel, landmarks, random_state)
        return self._looped(system, settings, X)

    def _settings(self, store: Store, sample: Examples) -> Settings:
        """Return what is not chosen by the data, for examples in memory or in blocks."""
        plain = not self.noise and sample.sets.weights is None
        start, set_model = self.start, self.set_model
        if start == "auto":
            start = "convex" if plain and isinstance(store, Block) else "evidence"
        if not (plain and has_set_model(store)):
            set_model = 0.0
        elif set_model == "auto":
            constant = in_every_set(store).any()
            set_model = SET_MODEL_OF_CONSTANT_LABELS if constant else SET_MODEL
        return Settings(
            self.max_iter,
            self.tol,
            self.power,
            shares=self._given_shares(),
            group_strength=0.0 if sample.groups is None else self.group_strength,
            set_model=float(set_model),
            noise=self.noise,
            start=start,
            in_sample=not self.leave_one_out,
        )

    def _given_shares(self) -> Floats | None:
        """Return the expected shares of the classes if they were given."""
        prior = self.class_prior
        if prior is None or isinstance(prior, str):
            return None
        return class_shares(prior, self.classes_, self._seen)

    def _expected_shares(self) -> Floats:
        shares = self._given_shares()
        return super()._expected_shares() if shares is None else shares

    def _looped(self, system: System, settings: Settings, X: Features) -> tuple[AnyRidge, Loop]:
        """Go through the rounds, and keep the regression on the last confidences."""
        ridge = system.ridge(self.alpha_)
        loop = begin(ridge, replace(settings, prior_strength=self.prior_strength_))
        self._features = replace(ridge.features, whitening=None)

        def keep() -> None:
            self._coef, self._intercept = ridge.coefficients(loop.confidences)

        with threads_for(ridge.operations):
            self.iterate(loop.rounds(), X=X, keep=keep)
        keep()
        return ridge, loop

    def _calibrated(
        self, ridge: AnyRidge, loop: Loop, examples: Examples, random_state: np.random.RandomState
    ) -> Floats:
        """Find the temperature, and return the confidences at it.

        There are two answers for each example that have not seen it: that of the regression
        without it, and that of a loop without it. The confidences are the mean of what
        follows from both. Where only some examples were held out, the others are made as sure as
        these are on average.
        """
        n, landmarks = len(examples), number_of_landmarks(len(examples), self.n_landmarks)
        if n_independent(examples) < 2 * CALIBRATION_FOLDS:
            return np.asarray(loop.confidences_at(1 / self.temperature_))
        if isinstance(ridge, KernelRidge):  # in single precision products take half the time
            ridge = KernelRidge(ridge.features, ridge.store, ridge.dual.astype(np.float32))
        kernel = KernelMap(self.kernel_, self.gamma_, self._unit)
        parameters = [(self.alpha_, self.prior_strength_)]
        fits = HeldOutFits(
            loop.settings, CALIBRATION_FOLDS, landmarks, LIMITS.cross_fitted_rows, random_state
        )
        (answers,) = fits.answers(examples, kernel, parameters, ridge)
        self.temperature_ = answers.temperature()
        if self.calibrated_by_ == "sets":
            apart = replace(examples, copies=by_set(examples.sets))
            (of_sets,) = fits.answers(apart, kernel, parameters, ridge)
            self.temperature_ = max(self.temperature_, min(of_sets.temperature(), 1.0))
        asked = answers.examples
        self._found = [features_finding(asked.sets, answers.scores, asked.weights)]
        assert isinstance(loop.store, Block)
        assert answers.rows is not None
        sets, power = loop.store.sets, 1 / self.temperature_
        confidences, scores = np.asarray(loop.confidences_at(power)), loop.scores
        loop.scores = scores.copy()
        loop.scores[sets.places(answers.rows)] = sets[answers.rows].entries(answers.scores)
        confidences = (confidences + loop.confidences_at(power)) / 2
        loop.scores = scores
        if len(asked) == n:
            return confidences
        return _as_sure(loop, sets.row_max(confidences)[answers.rows].mean(), answers.rows)


def _as_sure(loop: Loop, level: float, rows: NDArray[np.intp]) -> Floats:
    """Return confidences at the power at which the largest ones of some rows have a given mean."""
    assert isinstance(loop.store, Block)
    low, high = 1 / 20, 20.0
    for _ in range(HALVINGS):
        power = np.sqrt(low * high)
        confidences = np.asarray(loop.confidences_at(power))
        sure = loop.store.sets.row_max(confidences)[rows].mean() > level
        low, high = (low, power) if sure else (power, high)
    return confidences
