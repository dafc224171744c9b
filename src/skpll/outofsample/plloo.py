"""PL-LOO: every example is judged by a ridge regression that has not seen it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._array_api import get_namespace
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from skpll._examples import Examples as _Examples
from skpll._examples import group_numbers
from skpll._iteration import Iterative
from skpll._labels import as_objects, class_shares, lookup_codes
from skpll._rows import on_candidates
from skpll._temperature import FLOOR, log_scores, probabilities
from skpll._threads import threads_for
from skpll.base import (
    MatrixLike,
    ScoringClassifier,
    WeightedPartialLabelClassifier,
    unchanged_on_failure,
)
from skpll.candidates import CandidateSets, CandidatesLike
from skpll.engine.kernels import KERNELS, median_distance

from ._blocks import Blocks, Parts
from ._dask import fit_on_cluster, is_dask, predict_on_cluster
from ._fitting import (
    MANY_SCORES,
    MOST_ROWS,
    RIDGES,
    STRENGTHS,
    Answers,
    Recipe,
    Solution,
    choose,
    cross_fit,
)
from ._noise import missing, on_given
from ._ridge import Examples, Sums, System, is_large, merge_duplicates, number_of_landmarks
from ._segments import as_numpy, double, is_tensor, like

__all__ = ["PLLOO"]

Floats = NDArray[np.float64]

_FOLDS = 5
_MANY = 5000
"""Beyond so many examples, or many scores, the temperature is found on a fifth of them."""

_NUMBERS = 2**24
"""Numbers in the scores and mapped features of rows that are predicted together."""


@dataclass(eq=False, repr=False)
class PLLOO(Iterative, WeightedPartialLabelClassifier, ScoringClassifier):
    r"""Leave-one-out disambiguation (PL-LOO).

    Use it first: no parameters to set, confidences that can be relied on, nothing to compile.

    A model that has been trained on a wrong label finds it right. So every example is judged by
    a model that has *not* seen it: a ridge regression of the confidences on the features of a
    kernel, whose leave-one-out predictions :math:`F^\circ_{ij}` have a closed form. The
    confidences start alike, or from the evidence (`CandidateSets.weights`), and are updated in
    rounds:

    .. math:: Q_{ij} \propto \max(F^\circ_{ij}, \varepsilon)^p \; e_{ij} \; u_j^\tau,
              \qquad j \in S_i,

    where :math:`e_{ij}` is the likelihood of the evidence, and :math:`u_j` is the scaling under
    which the classes would have as many examples as their candidates suggest. The kernel, its
    width, the ridge and the strength :math:`\tau` are chosen without the truth; the sharpness of
    the probabilities is that under which the candidate sets are most likely, judged by loops that
    an example took no part in.

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
    group_by : {"candidates"} or None, default=None
        Whether examples with the same candidate set are a group, where `fit` is given no groups.
    group_strength : float, default=0.25
        How much it counts that each candidate of a group is expected to be somebody's label.
    noise : float or "auto", default=0.0
        The share of the candidate sets that miss the truth; ``"auto"`` estimates it. All classes
        take part in every round then.
    power : float, default=1.5
        By how much the predictions are sharpened in a round.
    leave_one_out : bool, default=True
        False asks the regression about examples that it was trained on: what methods that label and
        train in turn do, for comparison.
    n_landmarks : int or "auto", default="auto"
        More than twice as many examples are compared with so many random ones only. ``"auto"`` is
        2500, so that up to 5000 examples are all compared with each other, and 1000 for more than
        20 000 examples.
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
    temperature_ : float
        The power of the scores that gives probabilities.
    noise_ : float
        The share of the sets that miss the truth, given or estimated.
    missing_ : array of shape (n,)
        The confidence that the truth is none of the candidates; zero without `noise`.
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
    are not merged, and the temperature follows from the leave-one-out predictions of 2 000 of them.

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

    accepts_sparse = True
    _results_version = 2

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({"auto", "linear", *KERNELS})],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "class_prior": [StrOptions({"candidates"}), "array-like", dict, None],
        "prior_strength": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "group_by": [StrOptions({"candidates"}), None],
        "group_strength": [Interval(Real, 0, 1, closed="both")],
        "noise": [Interval(Real, 0, 0.5, closed="both"), StrOptions({"auto"})],
        "power": [Interval(Real, 0, None, closed="neither")],
        "leave_one_out": ["boolean"],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _: KW_ONLY
    kernel: Literal["auto", "laplacian", "rbf", "linear"] = "auto"
    gamma: float | Literal["auto"] = "auto"
    alpha: float | Literal["auto"] = "auto"
    class_prior: Literal["candidates"] | ArrayLike | Mapping[Any, float] | None = "candidates"
    prior_strength: float | Literal["auto"] = "auto"
    group_by: Literal["candidates"] | None = None
    group_strength: float = 0.25
    noise: float | Literal["auto"] = 0.0
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
    ) -> Self:
        """Learn from examples and their candidate labels.

        An interrupt (Ctrl-C) ends the rounds early with a warning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features; PyTorch tensors and Dask collections, too.
        y : candidate sets of n examples
            Any format of `skpll.as_candidates`; for a Dask collection one with the same
            partitions.
        sample_weight : array-like of shape (n,), optional
            How much each example counts; all alike by default. Examples of weight zero take no
            part, and get the candidate that the model finds most probable.
        groups : array-like of shape (n,), optional
            Examples that came together, such as the regions of a picture: each candidate of a
            group is expected to be the label of somebody in it.

        Returns
        -------
        self
        """
        with unchanged_on_failure(self):
            self._sums: Sums | None = None
            if is_dask(X):
                return fit_on_cluster(self, X, y, sample_weight, groups)
            X, candidates = self._validate_training_data(X, as_numpy(y) if is_tensor(y) else y)
            return self._learn(self._weighted(X, candidates, sample_weight, groups))

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
        what was decided about earlier ones stays. The first call is a `fit` that chooses
        parameters, landmarks and temperature for all: let it have some thousand examples. A `fit`
        keeps no sums, so that the first call after one begins anew.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features of the new examples.
        y : candidate sets of n examples
            Any format of `skpll.as_candidates`; may have labels that no call before had.
        classes : array-like, optional
            Labels that may come later.
        sample_weight : array-like of shape (n,), optional
            How much each example counts.
        groups : array-like of shape (n,), optional
            Examples that came together, as in `fit`.

        Returns
        -------
        self
            Its `transduction_` and `label_distributions_` are those of the new examples.
        """
        if is_dask(X):
            raise TypeError("X: partial_fit takes rows in memory; fit takes Dask collections.")
        before = getattr(self, "_sums", None)
        y = as_numpy(y) if is_tensor(y) else y
        X, candidates = self._validate_training_data(X, y, reset=before is None)
        labels = [] if before is None else as_objects(self.classes_)
        labels += [] if classes is None else as_objects(np.asarray(classes))
        labels += as_objects(candidates.classes)
        candidates = candidates.with_classes(dict.fromkeys(labels))
        known = None
        if before is not None:
            known = lookup_codes(before.labels, candidates.classes)
        elif classes is not None and len(candidates.classes) > 1:
            known = np.array([], dtype=np.intp)
        examples = self._weighted(X, candidates, sample_weight, groups)
        return self._learn(
            examples, learn=partial(self._learn_more, before=before, keep_sums=True), known=known
        )

    def _weighted(
        self, X: Any, candidates: CandidateSets, sample_weight: Any, groups: Any
    ) -> Examples:
        """Validate weights and groups."""
        sample_weight, groups = (
            as_numpy(given) if is_tensor(given) else given for given in (sample_weight, groups)
        )
        if not is_large(len(candidates), self.n_landmarks):
            X = as_numpy(X)
        rows = np.broadcast_to(0.0, X.shape)
        weights = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        numbers = None if groups is None else group_numbers(groups, candidates)
        return Examples(X, candidates, weights, numbers)

    def _fit(self, examples: _Examples) -> Floats:
        return self._learn_more(examples)

    def _learn_more(
        self, examples: _Examples, before: Sums | None = None, keep_sums: bool = False
    ) -> Floats:
        X, candidates, sample_weight = examples.X, examples.sets, examples.weights
        groups = examples.groups
        if groups is None and self.group_by == "candidates":
            groups = _same_sets(candidates)
        if before is not None:
            return self._grow(before, Examples(X, candidates, sample_weight, groups))
        examples = Examples(X, candidates, sample_weight, groups)
        random_state = check_random_state(self.random_state)
        if is_large(len(candidates), self.n_landmarks):
            mean = sample_weight.mean()
            examples = replace(
                examples, weights=sample_weight / mean if mean != 1 else sample_weight
            )
            rows = np.sort(random_state.choice(len(candidates), MOST_ROWS, replace=False))
            landmarks = number_of_landmarks(len(candidates), self.n_landmarks)
            blocks = examples.blocks(width=max(X.shape[1], landmarks))
            sample = examples.part(rows)
            solution = self._disambiguate(X, blocks, sample, random_state, groups)
            confidences = self._calibrate_by(solution, sample, rows)
            if keep_sums:
                self._sums = self._added_up(solution, sample_weight)
            return self._on_given(solution, confidences)
        examples, where = merge_duplicates(examples)
        n = len(examples.sets)
        landmarks = number_of_landmarks(n, self.n_landmarks)
        with threads_for(float(n) * min(n, 2 * landmarks) ** 2):
            solution = self._disambiguate(
                X, examples.blocks(), examples, random_state, examples.groups
            )
            confidences = self._calibrate(solution, examples, random_state)
        if keep_sums:
            self._sums = self._added_up(solution, sample_weight)
        given = self._on_given(solution, confidences)
        self.missing_: Floats = self.missing_[where]
        return _rows_of(given, examples.sets, where)

    def _disambiguate(
        self,
        X: Any,
        blocks: Blocks,
        sample: Examples,
        random_state: np.random.RandomState,
        groups: NDArray[np.intp] | None = None,
    ) -> Solution:
        """Choose the parameters on a sample, and go through the rounds on all examples."""
        recipe, unit = self._recipe(), median_distance(sample.X, random_state)
        self._choose(recipe, sample, unit, random_state)
        landmarks = number_of_landmarks(blocks.shape[0], self.n_landmarks)
        system = System.of(blocks, self.kernel_, self.gamma_, unit, landmarks, random_state)
        self._features, self._unit, self.temperature_ = system.features, unit, 1.0
        return self._go_through_rounds(X, recipe, system, groups)

    def _go_through_rounds(
        self, X: Any, recipe: Recipe, system: System, groups: NDArray[np.intp] | None
    ) -> Solution:
        solution = Solution(recipe, system, self.alpha_, self.prior_strength_, groups=groups)

        def keep() -> None:
            self._coef, self._intercept = solution.coefficients()

        with threads_for(solution.operations):
            self.iterate(
                solution.rounds(),
                total=self.max_iter,
                X=X,
                describe=lambda record: f"change {record['change']:.1e}",
                keep=keep,
                unit="round",
            )
        keep()
        return solution

    def _grow(self, before: Sums, new: Examples) -> Floats:
        """Learn from new examples beside the sums over earlier ones."""
        labels = as_objects(self.classes_[self._seen])
        before = before.on_classes(lookup_codes(before.labels, self.classes_[self._seen]), labels)
        width = max(new.X.shape[1], len(before.sums))
        blocks = replace(new, weights=new.weights / before.unit).blocks(width)
        system = before.system(blocks)
        solution = self._go_through_rounds(new.X, self._recipe(), system, new.groups)
        self._sums = Sums.of(solution.ridge, solution.loop.confidences, labels, before.unit)
        return self._on_given(solution, solution.loop.confidences_at(self.temperature_))

    def _added_up(self, solution: Solution, weights: Floats) -> Sums:
        """Keep the sums of a first fit, and what weight was taken for one in it."""
        unit = float(weights.sum() / solution.loop.total)
        labels = as_objects(self.classes_[self._seen])
        return Sums.of(solution.ridge, solution.loop.confidences, labels, unit)

    def _recipe(self) -> Recipe:
        prior = self.class_prior
        return Recipe(
            shares=None
            if prior is None or isinstance(prior, str)
            else class_shares(prior, self.classes_, self._seen),
            group_strength=self.group_strength,
            noise=self.noise,
            power=self.power,
            max_iter=self.max_iter,
            tol=self.tol,
            in_sample=not self.leave_one_out,
        )

    def _choose(
        self,
        recipe: Recipe,
        examples: Examples,
        unit: float,
        random_state: np.random.RandomState,
    ) -> None:
        """Choose the parameters that are left to the data."""
        kernels = KERNELS if self.kernel == "auto" else (self.kernel,)
        strengths = STRENGTHS if self.prior_strength == "auto" else (float(self.prior_strength),)
        if self.class_prior is None or (examples.sets.sizes == 1).all():
            strengths = (0.0,)
        self.search_ = choose(
            recipe,
            examples,
            unit,
            kernels,
            None if self.gamma == "auto" else (float(self.gamma),),
            RIDGES if self.alpha == "auto" else (float(self.alpha),),
            strengths,
            random_state,
        )
        self.kernel_, self.gamma_ = self.search_.kernel, self.search_.gamma
        self.alpha_, self.prior_strength_ = self.search_.alpha, self.search_.strength

    def _calibrate(
        self, solution: Solution, examples: Examples, random_state: np.random.RandomState
    ) -> Parts:
        """Find the temperature, and give the confidences at it.

        Two answers that have not seen the example are there for each: that of the regression
        without it, and that of a loop without it. The confidences are the mean of what
        follows from both.
        """
        loop, (n, q) = solution.loop, examples.sets.shape
        if n < 2 * _FOLDS:
            return loop.confidences_at(self.temperature_)
        (answers,) = cross_fit(
            solution.recipe,
            examples,
            self.kernel_,
            self.gamma_,
            self._unit,
            [(self.alpha_, self.prior_strength_)],
            _FOLDS,
            number_of_landmarks(n, self.n_landmarks),
            random_state,
            only_one=n > _MANY or n * q > MANY_SCORES,
        )
        self.temperature_ = answers.temperature()
        confidences = loop.confidences_at(self.temperature_)
        if len(answers.scores) < n:
            return confidences
        (block,) = solution.ridge.blocks.blocks
        loop.scores = [on_candidates(block.sets, answers.scores)]
        (others,) = loop.confidences_at(self.temperature_)
        return [(confidences[0] + others) / 2]

    def _calibrate_by(self, solution: Solution, sample: Examples, rows: NDArray[np.intp]) -> Parts:
        """Find the temperature on some of many examples, and give the confidences at it.

        Among many, what one example has said to the others in earlier rounds is nothing: the
        regression without it will do, and no second loop is needed.
        """
        ridge: Any = solution.ridge  # by features, since the examples are many
        scores = ridge.ask_everywhere(solution.loop.confidences, rows)
        self.temperature_ = Answers(sample, scores, solution.evidence.share).temperature()
        return solution.loop.confidences_at(self.temperature_)

    def _on_given(self, solution: Solution, confidences: Parts) -> Floats:
        """Give the confidences in the candidates that were given, and keep what is outside."""
        blocks: Any = solution.loop.blocks
        self.noise_ = solution.evidence.share
        self.missing_ = np.zeros(blocks.shape[0])
        if solution.recipe.noise:
            self.missing_ = blocks.joined(blocks.map(missing, confidences))
            confidences = blocks.map(on_given, confidences)
        return blocks.joined(confidences)

    def predict(self, X: MatrixLike) -> Any:
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
            return predict_on_cluster(self.predict, X, self.classes_.dtype)
        X = self._validate_features(X)
        best = np.concatenate([as_numpy(scores.argmax(1)) for scores in self._scores(X)])
        labels = self.classes_[self._seen[best]]
        if is_tensor(X) and labels.dtype.kind in "iufb":
            return get_namespace(X)[0].asarray(labels, device=X.device)
        return labels

    def predict_proba(self, X: MatrixLike) -> Any:
        """Give a probability for each class, at the temperature.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features.

        Returns
        -------
        probabilities : array of shape (n, q)
            Rows sum to one; zero for a class that is nobody's candidate.
        """
        if is_dask(X):
            return predict_on_cluster(self.predict_proba, X, np.float64, len(self.classes_))
        return super().predict_proba(X)

    def decision_function(self, X: MatrixLike) -> Any:
        """Score the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The features.

        Returns
        -------
        scores : array of shape (n, q), or (n,) for two classes
            A class that is nobody's candidate scores below all others. For two classes the score
            of the second less that of the first.
        """
        scores = super().decision_function(as_numpy(X) if is_tensor(X) else X)
        return like(scores, X) if is_tensor(X) else scores

    def _scores(self, X: Any) -> Iterator[Any]:
        """Score the classes of some rows after the other."""
        size = max(1, _NUMBERS // (sum(self._coef.shape)))
        for start in range(0, X.shape[0], size):
            rows = X[start : start + size]
            mapped = self._features(double(rows))
            scores = mapped @ like(self._coef, mapped) + like(self._intercept, mapped)
            yield like(scores, rows) if is_tensor(rows) else scores

    def _class_scores(self, X: Any) -> Any:
        parts = list(self._scores(X))
        return parts[0] if len(parts) == 1 else get_namespace(*parts)[0].concat(parts)

    def _probabilities(self, scores: Any) -> Any:
        if is_tensor(scores):
            return (self.temperature_ * scores.clip(min=FLOOR).log()).softmax(1)
        return probabilities(log_scores(scores), self.temperature_)

    def _for_all_classes(self, scores: Any, floor: Floats) -> Any:
        everywhere = super()._for_all_classes(as_numpy(scores), floor)
        return like(everywhere, scores) if is_tensor(scores) else everywhere

    def _with_others(
        self, examples: _Examples, taking_part: NDArray[np.bool_], confidences: Floats
    ) -> Floats:
        examples = replace(examples, X=as_numpy(examples.X))
        return super()._with_others(examples, taking_part, confidences)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _read_features(self, X: Any) -> Any:
        return validate_data(self, X, **self._checks_of(X))

    def _validate_features(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **self._checks_of(X))

    def _checks_of(self, X: Any) -> dict[str, Any]:
        """Leave tensors what they are, where scikit-learn dispatches on the array library."""
        checks = self._feature_checks()
        if is_tensor(X) and get_namespace(X)[1]:
            xp, _ = get_namespace(X)
            checks["dtype"] = [xp.float64, xp.float32]
        return checks


def _same_sets(candidates: CandidateSets) -> NDArray[np.intp]:
    """Give examples with the same candidate set the same number."""
    numbers: dict[bytes, int] = {}
    ends = zip(candidates.indptr[:-1], candidates.indptr[1:], strict=True)
    return np.array(
        [numbers.setdefault(candidates.indices[a:b].tobytes(), len(numbers)) for a, b in ends],
        dtype=np.intp,
    )


def _rows_of(values: Floats, sets: CandidateSets, rows: NDArray[np.intp]) -> Floats:
    """Repeat the values of the candidates of some examples."""
    sizes = sets.sizes[rows]
    ends = np.cumsum(sizes)
    places = np.arange(ends[-1]) + np.repeat(sets.indptr[rows] - (ends - sizes), sizes)
    return values[places]
