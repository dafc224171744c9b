"""PL-LOO: every example is judged by a ridge regression that has not seen it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.utils import check_random_state
from sklearn.utils._array_api import get_namespace
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from skpll._errors import ArgumentError
from skpll._examples import Examples, Features, group_numbers
from skpll._iteration import Iterative
from skpll._labels import as_objects, class_shares, lookup_codes
from skpll._temperature import FLOOR, log_scores, probabilities
from skpll._threads import threads_for
from skpll.base import (
    MatrixLike,
    ScoringClassifier,
    WeightedPartialLabelClassifier,
    unchanged_on_failure,
)
from skpll.candidates import CandidatesLike
from skpll.diagnosis import features_finding
from skpll.engine.arrays import (
    as_float64,
    as_numpy,
    beside,
    is_foreign,
    is_tensor,
    place,
    to_namespace,
)
from skpll.engine.blocks import Block, Part, Store
from skpll.engine.kernels import KERNELS, FeatureMap, KernelMap, median_distance
from skpll.engine.limits import LIMITS, is_large, number_of_landmarks
from skpll.large.blocks import in_blocks, stacked
from skpll.large.dask import Cluster, is_dask, on_partitions

from ._fitting import (
    CHOICE_FOLDS,
    LINEAR_RIDGES,
    RIDGES,
    STRENGTHS,
    WIDTHS,
    Answers,
    HeldOutFits,
    Settings,
    Solution,
    choose,
    entries_of,
    merge_duplicates,
    n_independent,
)
from ._loop import Loop, missing, on_given, open_if
from ._regression import KernelRidge, Ridge, Sums, System
from ._repeated import (
    NearCopyWarning,
    by_set,
    come_in_groups,
    look_at_neighbors,
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


@dataclass(frozen=True)
class Learned:
    """What `partial_fit` has to know of the examples of earlier calls.

    Parameters
    ----------
    features : FeatureMap
        The features of the regression.
    unit : float
        The sample weight that counts as one.
    sums : Sums or None
        The sums over the examples.
    targets : sparse array of shape (n, q) or None
        For a kernel of all examples, their confidences, from which the sums can be computed, and
    weights : array of shape (n,) or None
        their weights.
    """

    features: FeatureMap
    unit: float
    sums: Sums | None = None
    targets: sparse.csr_array | None = None
    weights: Floats | None = None

    def added_up(self) -> tuple[FeatureMap, Sums]:
        """Return the features of the regression and the sums over all examples."""
        if self.sums is not None:
            return self.features, self.sums
        assert self.features.kernel is not None
        assert self.targets is not None
        assert self.weights is not None
        return Sums.of_kernel(self.features, self.targets, self.weights)


@dataclass(eq=False, repr=False)
class PLLOO(Iterative, WeightedPartialLabelClassifier, ScoringClassifier):
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
    transduction_ : array of shape (n,)
        The candidate of each training example with the largest confidence.
    label_distributions_ : sparse array of shape (n, q)
        The confidence in each candidate, at the temperature.
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
        The confidence that the truth is none of the candidates; zero without `noise`.
    inseparable_ : list of tuple
        Labels that never come apart, see `skpll.diagnose`: confidences and probabilities share out
        by the prior what they have together. Not looked for in Dask collections.
    search_ : Choice
        What was tried, and how well it did.
    history_ : list of dict
        For each round, the share of the confidence that moved (``change``) and the mean of the
        largest (``confidence``).
    n_iter_ : int
        Number of rounds.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, where `X` had any.

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
        sample_weight : array-like of shape (n,), optional
            The weight of each example; equal weights by default. Examples of weight zero are not
            learned from, and get the candidate that the model finds most probable.
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
            self._learned: Learned | None = None
            self._waiting: Examples | None = None
            if is_dask(X):
                _check_no_copies(copies)
                return self._fit_on_cluster(X, y, sample_weight, groups)
            examples = self._checked(X, y, sample_weight, groups, copies)
            return self._learn(examples)._bring_to(X)

    def partial_fit(
        self,
        X: MatrixLike,
        y: CandidatesLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn from more examples, without those of earlier calls.

        All that the regression has to know of earlier examples are sums, which are kept: a call
        takes as long as its own examples do. They are judged with the help of all examples so far;
        what was decided about earlier ones stays. The first call, or the `fit` before it, chooses
        parameters, landmarks and temperature for all: let it have some thousand examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features of the new examples.
        y : candidate sets of n examples
            Any format of `skpll.as_candidates`; may have labels that no call before had.
        classes : array-like, optional
            Labels that may come later. With them, the first examples may be of one class; they
            are kept until examples of another class come.
        sample_weight : array-like of shape (n,), optional
            The weight of each example.
        groups : array-like of shape (n,), optional
            Examples that came together, as in `fit`.

        Returns
        -------
        self
            Its `transduction_` and `label_distributions_` are those of the new examples.
        """
        if is_dask(X):
            raise TypeError("X: partial_fit takes rows in memory; fit takes Dask collections.")
        waiting: Examples | None = getattr(self, "_waiting", None)
        if waiting is not None or not hasattr(self, "_features"):
            with unchanged_on_failure(self):
                new = self._checked(X, y, sample_weight, groups, reset=waiting is None)
                return self._begin(new, classes, waiting)._bring_to(X)
        if getattr(self, "_learned", None) is None:
            raise ArgumentError(
                "X",
                "the earlier fit was too large to keep what partial_fit needs; start with "
                "partial_fit in the place of fit.",
            )
        with unchanged_on_failure(self):
            new = self._checked(X, y, sample_weight, groups, reset=False)
            return self._continue(new, classes)._bring_to(X)

    def _begin(self, new: Examples, classes: ArrayLike | None, waiting: Examples | None) -> Self:
        """Learn from the first examples of `partial_fit`.

        Examples of one class tell nothing of the others: they wait for examples of another class,
        from which parameters and landmarks are chosen.
        """
        examples = new if waiting is None else _together(waiting, new)
        examples = self._with_labels(examples, [], classes)
        several = len(examples.sets.classes) > 1 and (classes is not None or waiting is not None)
        known = np.array([], dtype=np.intp) if several else None
        self._learn(examples, learn=partial(self._fit, keep=True), known=known)
        self._waiting = examples if len(self._seen) == 1 else None
        if waiting is not None:
            for name in ("transduction_", "label_distributions_", "missing_"):
                setattr(self, name, getattr(self, name)[-len(new) :])
        return self

    def _continue(self, examples: Examples, classes: ArrayLike | None) -> Self:
        """Learn from the examples of another call of `partial_fit`."""
        labels = as_objects(self.classes_[self._seen])
        examples = self._with_labels(examples, as_objects(self.classes_), classes)
        known = lookup_codes(labels, examples.sets.classes)
        return self._learn(examples, learn=partial(self._grow, labels=labels), known=known)

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
        X = X if keeps_place else as_numpy(X)
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

    def _with_labels(
        self, examples: Examples, labels: list[Any], classes: ArrayLike | None
    ) -> Examples:
        """Add classes that are known, or may come, to those of the examples."""
        labels = labels + ([] if classes is None else as_objects(np.asarray(classes)))
        labels = labels + as_objects(examples.sets.classes)
        return replace(examples, sets=examples.sets.with_classes(dict.fromkeys(labels)))

    def _fit(self, examples: Examples, keep: bool = False) -> Floats:
        self.calibrated_by_ = "rows"
        if is_large(len(examples), self.n_landmarks):
            _check_no_copies(examples.copies)
            return self._fit_in_blocks(examples, keep)
        random_state = check_random_state(self.random_state)
        merged, where = merge_duplicates(examples)
        self.group_by_ = self._found_groups(merged)
        merged = self._grouped(merged)
        if merged.copies is None:
            self._look_for_copies(merged, where)
        n, landmarks = len(merged), number_of_landmarks(len(merged), self.n_landmarks)
        with threads_for(float(n) * min(n, 2 * landmarks) ** 2):
            solution = self._solution(Block.of(merged), merged, random_state, examples.X)
            confidences = self._calibrated(solution, merged, random_state)
        self._keep(solution, examples.weights.sum() / n, keep)
        confidences = self._on_given(solution.loop, confidences)
        self.missing_: Any = self.missing_[where]
        return confidences[entries_of(merged.sets, where)]

    def _fit_in_blocks(self, examples: Examples, keep: bool) -> Floats:
        """Fit to many examples, of which each, or a copy of it, has next to no influence."""
        self.group_by_ = None if self.group_by == "auto" else self.group_by
        examples, mean = self._grouped(examples), examples.weights.mean()
        examples = replace(examples, weights=examples.weights / mean)
        landmarks = number_of_landmarks(len(examples), self.n_landmarks)
        store = in_blocks(examples, max(examples.X.shape[1], landmarks))
        solution, confidences = self._fit_by_sample(store, examples.X)
        self._keep(solution, float(mean), keep)
        return np.asarray(store.joined(self._on_given(solution.loop, confidences)))

    def _fit_on_cluster(
        self,
        X: MatrixLike,
        y: CandidatesLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> Self:
        """Fit to the rows of a Dask array or data frame, where they are.

        Few rows are brought to the client and fitted there, since parameters, duplicates and exact
        kernels need all of them in one place.
        """
        self._validate_params()
        if groups is not None or self.group_by == "candidates":
            raise ArgumentError(
                "groups", "not supported for Dask collections; leave groups and group_by out."
            )
        self.group_by_, self.calibrated_by_ = None, "rows"
        cluster = Cluster(X, y, sample_weight)
        if not is_large(len(cluster), self.n_landmarks):
            return self.fit(*cluster.in_memory())
        empty = X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))
        validate_data(self, empty, skip_check_array=True)
        self.classes_, self._seen = cluster.classes, cluster.seen
        self.inseparable_: list[tuple[Any, ...]] = []  # too many rows to look for it
        solution, confidences = self._fit_by_sample(cluster.store(self.n_features_in_))
        self._keep(solution, cluster.mean_weight, keep=False)
        store: Any = solution.loop.store
        given = self._on_given(solution.loop, confidences)
        self.transduction_, self.label_distributions_ = cluster.results(store, given)
        return self

    def _fit_by_sample(self, store: Store, X: Features = None) -> tuple[Solution, Part]:
        """Choose parameters and temperature on a sample, and go through the rounds on all.

        Among many examples, what one of them has said to the others in earlier rounds is
        negligible: the temperature follows from the regression without it.
        """
        random_state = check_random_state(self.random_state)
        n, n_sample = store.shape[0], min(store.shape[0], LIMITS.choice_rows)
        rows = np.sort(random_state.choice(n, n_sample, replace=False))
        sample, _ = store.sample(rows)
        if is_tensor(X):
            sample = replace(sample, X=X[rows])
        solution = self._solution(store, sample, random_state, X)
        ridge, loop = solution.ridge, solution.loop
        assert isinstance(ridge, Ridge)
        scores = ridge.ask_everywhere(loop.confidences, rows)
        if is_tensor(X):
            scores = to_namespace(scores, as_float64(X[:0]))
        self.temperature_ = Answers(sample, scores, loop.evidence.share).temperature()
        return solution, loop.confidences_at(1 / self.temperature_)

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

    def _solution(
        self, store: Store, sample: Examples, random_state: np.random.RandomState, X: Features
    ) -> Solution:
        """Choose the parameters on a sample, and go through the rounds on all examples."""
        strengths = STRENGTHS if self.prior_strength == "auto" else (float(self.prior_strength),)
        if self.class_prior is None or (sample.sets.sizes == 1).all():
            strengths = (0.0,)
        if self.noise or not has_set_model(Block.of(sample)):
            strengths = strengths[:1]  # nothing to tell them apart by
        ridges = LINEAR_RIDGES if self.kernel == "linear" and isinstance(store, Block) else RIDGES
        alphas = ridges if self.alpha == "auto" else (float(self.alpha),)
        gammas = WIDTHS if self.gamma == "auto" else dict.fromkeys(WIDTHS, (float(self.gamma),))
        kernels = KERNELS if self.kernel == "auto" else (self.kernel,)
        widths = {name: gammas[name] for name in kernels}
        settings = self._settings(store, sample)
        self._unit = median_distance(as_numpy(sample.X), random_state)
        fits = HeldOutFits(
            settings, CHOICE_FOLDS, LIMITS.choice_landmarks, LIMITS.choice_rows, random_state
        )
        found = self.search_ = choose(fits, sample, self._unit, widths, alphas, strengths)
        self.kernel_, self.gamma_ = found.kernel, found.gamma
        self.alpha_, self.prior_strength_ = found.alpha, found.strength
        kernel = KernelMap(self.kernel_, self.gamma_, self._unit)
        landmarks = number_of_landmarks(store.shape[0], self.n_landmarks)
        self.temperature_ = 1.0
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
            shares=self._given_shares(),
            group_strength=0.0 if sample.groups is None else self.group_strength,
            noise=self.noise,
            power=self.power,
            max_iter=self.max_iter,
            tol=self.tol,
            in_sample=not self.leave_one_out,
            start=start,
            set_model=float(set_model),
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

    def _looped(self, system: System, settings: Settings, X: Features) -> Solution:
        """Go through the rounds, and keep the regression on the last confidences."""
        ridge = system.ridge(self.alpha_)
        loop = settings.loop(ridge, self.prior_strength_)
        self._features = replace(ridge.features, whitening=None)

        def keep() -> None:
            self._coef, self._intercept = ridge.coefficients(loop.confidences)

        with threads_for(ridge.operations):
            self.iterate(loop.rounds(self.max_iter, self.tol), X=X, keep=keep)
        keep()
        return Solution(settings, ridge, loop)

    def _calibrated(
        self, solution: Solution, examples: Examples, random_state: np.random.RandomState
    ) -> Floats:
        """Find the temperature, and return the confidences at it.

        There are two answers for each example that have not seen it: that of the regression
        without it, and that of a loop without it. The confidences are the mean of what
        follows from both. Where only some examples were held out, the others are made as sure as
        these are on average.
        """
        loop, n = solution.loop, len(examples)
        if n_independent(examples) < 2 * CALIBRATION_FOLDS:
            return np.asarray(loop.confidences_at(1 / self.temperature_))
        fits = HeldOutFits(
            solution.settings,
            CALIBRATION_FOLDS,
            number_of_landmarks(n, self.n_landmarks),
            LIMITS.cross_fitted_rows,
            random_state,
        )
        kernel = KernelMap(self.kernel_, self.gamma_, self._unit)
        parameters = [(self.alpha_, self.prior_strength_)]
        whole = solution.ridge
        if isinstance(whole, KernelRidge):  # in single precision products take half the time
            single = whole.dual.astype(np.float32)
            whole = KernelRidge(whole.features, whole.store, single)
        (answers,) = fits.answers(examples, kernel, parameters, whole)
        self.temperature_ = answers.temperature()
        if self.calibrated_by_ == "sets":
            apart = replace(examples, copies=by_set(examples.sets))
            (of_sets,) = fits.answers(apart, kernel, parameters, whole)
            self.temperature_ = max(self.temperature_, min(of_sets.temperature(), 1.0))
        useless = features_finding(answers.examples.sets, answers.scores, answers.examples.weights)
        self._found = [] if useless is None else [useless]
        assert isinstance(loop.store, Block)
        assert answers.rows is not None
        sets, asked = loop.store.sets, answers.rows
        scores, entries = loop.scores, entries_of(sets, asked)
        confidences = np.asarray(loop.confidences_at(1 / self.temperature_))
        loop.scores = scores.copy()
        loop.scores[entries] = sets[asked].entries(answers.scores)
        confidences = (confidences + loop.confidences_at(1 / self.temperature_)) / 2
        loop.scores = scores
        if len(asked) == n:
            return confidences
        return _as_sure(loop, sets.row_max(confidences)[asked].mean(), asked)

    def _keep(self, solution: Solution, unit: float, keep: bool) -> None:
        """Keep what `partial_fit` needs, unless it is large and not asked for."""
        ridge = solution.ridge
        if isinstance(ridge, KernelRidge):
            targets = ridge.store.sets.to_matrix(solution.loop.confidences)
            weights = ridge.store.weights
            self._learned = Learned(ridge.features, unit, targets=targets, weights=weights)
        elif keep or ridge.sums.gram.size <= LIMITS.kept_numbers:
            self._learned = Learned(ridge.features, unit, ridge.added_up())

    def _grow(self, new: Examples, labels: list[Any]) -> Floats:
        """Learn from new examples beside the sums over earlier ones."""
        assert self._learned is not None
        new, unit = self._grouped(new), self._learned.unit
        features, sums = self._learned.added_up()
        seen = self.classes_[self._seen]
        sums = sums.on_classes(lookup_codes(labels, seen), len(seen))
        width = max(new.X.shape[1], len(sums.sums))
        store = in_blocks(replace(new, weights=new.weights / unit), width)
        settings = self._settings(store, new)
        system = System.on_features(features, open_if(self.noise, store), before=sums)
        solution = self._looped(system, settings, new.X)
        self._keep(solution, unit, keep=True)
        confidences = solution.loop.confidences_at(1 / self.temperature_)
        return np.asarray(store.joined(self._on_given(solution.loop, confidences)))

    def _on_given(self, loop: Loop, confidences: Part) -> Part:
        """Return the confidences in the candidates that were given, and keep what is outside."""
        self.noise_ = loop.evidence.share
        self.missing_ = loop.store.joined(loop.store.map(missing, confidences))
        return loop.store.map(on_given, confidences) if self.noise else confidences

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict the label of each example.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features.

        Returns
        -------
        labels : array of shape (n,)
        """
        if is_dask(X):
            return on_partitions(self.predict, X, self.classes_.dtype)
        self._check_place(X, "predict")
        X = self._validate_features(X)
        rows = X if is_tensor(X) else as_numpy(X)
        best = np.concatenate([as_numpy(scores.argmax(1)) for scores in self._scores(rows)])
        labels = self.classes_[self._seen[best]]
        if is_foreign(X) and get_namespace(X)[1] and labels.dtype.kind in "iufb":
            return beside(labels, X)
        return labels

    def predict_proba(self, X: MatrixLike) -> Any:
        """Return the probability of each class, at the temperature.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features.

        Returns
        -------
        probabilities : array of shape (n, q)
            Rows sum to one; zero for a class that is in no candidate set.
        """
        if is_dask(X):
            return on_partitions(self.predict_proba, X, np.float64, len(self.classes_))
        self._check_place(X, "predict_proba")
        rows = X if is_tensor(X) else self._validated_on_cpu(X)
        return _like(super().predict_proba(rows), X)

    def predict_log_proba(self, X: MatrixLike) -> Any:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features.

        Returns
        -------
        log_probabilities : array of shape (n, q)
            Minus infinity where a probability is zero.
        """
        self._check_place(X, "predict_log_proba")
        probabilities = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            if is_foreign(probabilities):
                return get_namespace(probabilities)[0].log(probabilities)
            return np.log(probabilities)

    def decision_function(self, X: MatrixLike) -> Any:
        """Score the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features.

        Returns
        -------
        scores : array of shape (n, q), or (n,) for two classes
            A class that is in no candidate set scores below all others. For two classes the score
            of the second less that of the first.
        """
        self._check_place(X, "decision_function")
        return _like(super().decision_function(self._validated_on_cpu(X)), X)

    def _scores(self, X: Any) -> Iterator[Any]:
        """Yield the scores of the classes of some rows at a time."""
        size = max(1, LIMITS.predicted_numbers // sum(self._coef.shape))
        for start in range(0, X.shape[0], size):
            rows = X[start : start + size]
            mapped = self._features(as_float64(rows))
            scores = mapped @ to_namespace(self._coef, mapped) + to_namespace(
                self._intercept, mapped
            )
            yield to_namespace(scores, rows) if is_tensor(rows) else scores

    def _class_scores(self, X: Any) -> Any:
        parts = list(self._scores(X))
        return parts[0] if len(parts) == 1 else get_namespace(*parts)[0].concat(parts)

    def _probabilities(self, scores: Any) -> Any:
        if is_tensor(scores):
            return (scores.clip(min=FLOOR).log() / self.temperature_).softmax(1)
        return probabilities(log_scores(scores), self.temperature_)

    def _for_all_classes(self, scores: Any, floor: Floats) -> Any:
        everywhere = super()._for_all_classes(as_numpy(scores), floor)
        return to_namespace(everywhere, scores) if is_tensor(scores) else everywhere

    def _with_others(
        self, examples: Examples, taking_part: NDArray[np.bool_], confidences: Floats
    ) -> Floats:
        examples = replace(examples, X=as_numpy(examples.X))
        return super()._with_others(examples, taking_part, confidences)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _bring_to(self, X: MatrixLike) -> Self:
        """Bring fitted arrays to the library and device of `X` where scikit-learn dispatches."""
        if is_foreign(X) and get_namespace(X)[1]:
            for name, value in list(vars(self).items()):
                numbers = isinstance(value, np.ndarray) and value.dtype.kind in "iufb"
                if numbers and name not in ("classes_", "_seen"):
                    setattr(self, name, beside(value, X))
        return self

    def _check_place(self, X: MatrixLike, method: str) -> None:
        """Refuse features of another library or device than those of `fit`, as scikit-learn."""
        check_is_fitted(self)
        if get_config()["array_api_dispatch"] and place(X) != place(self._coef):
            raise ArgumentError(
                "X",
                f"{type(self).__name__}.{method}() must use the same namespace and device as fit, "
                f"{' on '.join(place(self._coef))}, not {' on '.join(place(X))}.",
            )

    def _validated_on_cpu(self, X: Any) -> Any:
        return as_numpy(self._validate_features(X)) if is_foreign(X) else X

    def _read_features(self, X: Any, reset: bool = True) -> Any:
        """Leave tensors what they are, where scikit-learn dispatches on the array library."""
        checks = self._feature_checks()
        if is_foreign(X) and get_namespace(X)[1]:
            xp, _ = get_namespace(X)
            checks["dtype"] = [xp.float64, xp.float32]
        return validate_data(self, X, reset=reset, **checks)

    def _validate_features(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._read_features(X, reset=False)


def _like(scores: Any, X: Any) -> Any:
    """Bring scores to the library and device of features, and to their precision."""
    single = isinstance(X, np.ndarray) and X.dtype == np.float32
    return to_namespace(scores, X) if single or is_foreign(X) else scores


def _together(first: Examples, second: Examples) -> Examples:
    """Put examples one after the other; groups of different calls are different groups."""
    if first.groups is not None and second.groups is not None:
        second = replace(second, groups=first.groups.max() + 1 + second.groups)
    return stacked([(Block.of(first), []), (Block.of(second), [])])[0]


def _check_no_copies(copies: object) -> None:
    if copies is not None:
        raise ArgumentError(
            "copies", "not supported for data in blocks; keep one row of each group of copies."
        )


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
