r"""Self-paced learning: which examples count how much, and how that grows.

Self-paced learning gives every example a weight :math:`v_i \in [0, 1]`, small for the difficult
ones, and lets all of them in as the *pace* :math:`\lambda` grows. Three questions are answered
here, each by one small table:

difficulty
    How hard is an example, given the losses of its candidate labels?
scale
    On which scale do difficulty :math:`\ell_i` and pace meet?
regularizer
    Which weight follows from the two? It is the solution of
    :math:`\min_{v \in [0,1]} v \ell + f(v, \lambda)` for a convex :math:`f`.

`Pace` puts them together with a schedule, which says how the pace grows along the path of the
regularization constant.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import accumulate
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from ._parameters import POSITIVE
from ._typing import Constraints, Floats

if TYPE_CHECKING:
    from .candidates import CandidateSets

__all__ = ["DIFFICULTIES", "REGULARIZERS", "SCALES", "SCHEDULES", "Pace", "Regularizer", "Stage"]


def __dir__() -> list[str]:
    return __all__


Labels: TypeAlias = NDArray[np.integer]
DifficultyName: TypeAlias = Literal["leave_one_out", "loss", "gap", "entropy"]
ScaleName: TypeAlias = Literal["share", "class_share", "minmax", "absolute", "objective"]
RegularizerName: TypeAlias = Literal["hard", "linear", "logarithmic", "mixture"]
ScheduleName: TypeAlias = Literal["restart", "once", "carry", "spread"]
Difficulty: TypeAlias = Callable[[Floats, NDArray[np.int64], "CandidateSets"], Floats]
"""From the losses of all candidates, the places of the assigned ones among them, and the candidate
sets to the difficulty of each example; minus infinity for what must always be admitted."""


LEAVE_ONE_OUT = "leave_one_out"
"""The difficulty that an estimator has to ask other models for."""


# -- difficulty ----------------------------------------------------------------------------


def assigned_loss(losses: Floats, assigned: NDArray[np.int64], _: CandidateSets) -> Floats:
    """Return the loss of the assigned label, at most 1: the difficulty that the paper prints."""
    return np.minimum(losses[assigned], 1.0)


def label_gap(losses: Floats, assigned: NDArray[np.int64], candidates: CandidateSets) -> Floats:
    """Return the loss of the assigned label less that of the best other candidate.

    A large gap says that another candidate would have suited the model better, or as well: the
    example *together with its labels* is hard. An example with a single candidate has nothing to
    confuse and is always admitted.
    """
    others = losses.copy()
    others[assigned] = np.inf
    rivals = np.minimum.reduceat(others, candidates.indptr[:-1])
    return losses[assigned] - rivals


def candidate_entropy(losses: Floats, _: NDArray[np.int64], candidates: CandidateSets) -> Floats:
    """Return the entropy of a softmax of the candidates' negative losses.

    It is large where the model cannot tell the candidates apart, whichever is assigned. An example
    with a single candidate is always admitted.
    """
    likely = candidates.row_softmax(-losses)
    return np.where(candidates.sizes > 1, candidates.row_entropies(likely), -np.inf)


DIFFICULTIES: dict[str, Difficulty] = {
    "loss": assigned_loss,
    "gap": label_gap,
    "entropy": candidate_entropy,
}


# -- scale ---------------------------------------------------------------------------------


def share_of_easier(difficulty: Floats, _: float, importance: Floats, *__: object) -> Floats:
    """Return the share of the examples that are easier: a pace of 0.6 admits the easiest 60 %.

    Examples count by their importance. Equals share the lowest place, so that they are admitted
    together.
    """
    order = np.argsort(difficulty, kind="stable")
    easier = np.concatenate(([0.0], np.cumsum(importance[order])))
    return easier[np.searchsorted(difficulty[order], difficulty)] / easier[-1]


def share_of_easier_in_class(
    difficulty: Floats, C: float, importance: Floats, labels: Labels
) -> Floats:
    """Return the share of the examples with the same assigned label that are easier.

    Every label then sends its easiest examples from the start, rare and hard labels too.
    """
    shares = np.empty_like(difficulty)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        shares[rows] = share_of_easier(difficulty[rows], C, importance[rows])
    return shares


def min_max(difficulty: Floats, *_: object) -> Floats:
    """Return difficulties between 0, the easiest, and 1, the hardest."""
    finite = difficulty[np.isfinite(difficulty)]
    if not len(finite) or finite.max() == finite.min():
        return np.zeros_like(difficulty)
    low, high = finite.min(), finite.max()
    return np.clip((difficulty - low) / (high - low), 0.0, 1.0)


def absolute(difficulty: Floats, *_: object) -> Floats:
    """Return difficulties as they are, none below zero: the paper's Eq. (5)."""
    return np.maximum(difficulty, 0.0)


def objective(difficulty: Floats, C: float, *_: object) -> Floats:
    """Return difficulties times C, as they enter the objective: the exact solution of OP(6)."""
    return C * np.maximum(difficulty, 0.0)


SCALES: dict[str, Callable[..., Floats]] = {
    "share": share_of_easier,
    "class_share": share_of_easier_in_class,
    "minmax": min_max,
    "absolute": absolute,
    "objective": objective,
}


# -- regularizer ---------------------------------------------------------------------------

# Jiang et al. (2014) write the logarithmic weight with ζ = 1 − λ. It does not grow with λ then: the
# weight of ℓ = 0.1 falls from 0.74 at λ = 0.5 to 0.48 at λ = 0.99. With ζ fixed, and ℓ measured in
# units of λ, it does.
_ZETA = 0.1
_KAPPA = (1 - _ZETA) / _ZETA


class Regularizer(NamedTuple):
    """A self-paced regularizer and the weights that follow from it.

    Examples
    --------
    >>> import numpy as np
    >>> from skpll.pacing import REGULARIZERS
    >>> REGULARIZERS["linear"].weights(np.array([0.0, 0.3, 2.0]), pace=0.6).tolist()
    [1.0, 0.5, 0.0]
    """

    penalty: Callable[[Floats, float], Floats]
    """The function f(v, λ)."""
    weight: Callable[[Floats], Floats]
    """The minimizer v* of v·ℓ + f(v, λ), as a function of u = ℓ / λ."""

    def weights(self, difficulty: Floats, pace: float) -> Floats:
        """Weights of examples of the given difficulty at the given pace.

        Parameters
        ----------
        difficulty : array of non-negative numbers
            The difficulty ℓ of each example.
        pace : float
            The pace λ. At zero nothing is admitted.

        Returns
        -------
        weights : array
            Between zero and one.
        """
        difficulty = np.asarray(difficulty, dtype=np.float64)
        if pace <= 0:
            return np.zeros_like(difficulty)
        with np.errstate(over="ignore"):
            return self.weight(difficulty / pace)


REGULARIZERS: dict[str, Regularizer] = {
    # All or nothing.
    "hard": Regularizer(
        penalty=lambda v, pace: -pace * v,
        weight=lambda u: (u < 1).astype(np.float64),
    ),
    # The paper's: Eq. (3) and Eq. (5).
    "linear": Regularizer(
        penalty=lambda v, pace: pace / 2 * (v**2 - 2 * v),
        weight=lambda u: np.maximum(0.0, 1.0 - u),
    ),
    # Falls steeply at first, then slowly.
    "logarithmic": Regularizer(
        penalty=lambda v, pace: pace * (v + (1 + _KAPPA) ** (1 - v) / np.log1p(_KAPPA)) / _KAPPA,
        weight=lambda u: 1.0 - np.log1p(_KAPPA * np.minimum(u, 1.0)) / np.log1p(_KAPPA),
    ),
    # One for the easier half of what is admitted, then falling to zero.
    "mixture": Regularizer(
        penalty=lambda v, pace: -pace * np.log1p(v),
        weight=lambda u: np.clip(1.0 / np.maximum(u, 0.5) - 1.0, 0.0, 1.0),
    ),
}


# -- schedule ------------------------------------------------------------------------------


class Stage(NamedTuple):
    """One round of the alternating optimization: a regularization constant and a pace."""

    C: float
    pace: float


def growing_steps(start: float, growth: float, end: float) -> list[float]:
    """Return steps from the start to the end, both included, each a factor above the one before."""
    steps = [start]
    while steps[-1] < end:
        steps.append(min(steps[-1] * growth, end))
    return steps


def _restart(path: Sequence[float], start: float, growth: float, end: float) -> list[Stage]:
    """Begin anew for each C."""
    return [Stage(C, pace) for C in path for pace in growing_steps(start, growth, end)]


def _once(path: Sequence[float], start: float, growth: float, end: float) -> list[Stage]:
    """Run through all paces at the first C; all later ones admit everything."""
    return _restart(path[:1], start, growth, end) + [Stage(C, end) for C in path[1:]]


def _carry(path: Sequence[float], start: float, growth: float, end: float) -> list[Stage]:
    """Take one step of the pace with each step of C."""
    paces = accumulate(path, lambda pace, _: min(pace * growth, end), initial=start)
    return [Stage(C, pace) for C, pace in zip(path, paces, strict=False)]


def _spread(path: Sequence[float], start: float, _: float, end: float) -> list[Stage]:
    """Spread the way from start to end over the whole path of C; the growth follows from it."""
    steps = np.linspace(0.0, 1.0, len(path)) if len(path) > 1 else np.ones(1)
    return [
        Stage(C, float(start * (end / start) ** step)) for C, step in zip(path, steps, strict=True)
    ]


SCHEDULES: dict[str, Callable[[Sequence[float], float, float, float], Iterable[Stage]]] = {
    "restart": _restart,
    "once": _once,
    "carry": _carry,
    "spread": _spread,
}


@dataclass(repr=False)
class Pace(BaseEstimator):
    """How examples are admitted from easy to hard.

    `SPPLL` and `SelfPaced` take one. Its parameters can be searched for under names such as
    ``pace__start``.

    Parameters
    ----------
    difficulty : {"leave_one_out", "gap", "loss", "entropy"} or callable, default="leave_one_out"
        What makes an example hard: how little models that have not seen it trust in its label (in
        `SPPLL` that is `PLLOO`); the loss of its label less that of the next-best candidate; the
        loss of its label alone, as in the paper; candidates with similar losses (the entropy of a
        softmax); or a function as described by `Difficulty`.
    weights : {"hard", "linear", "logarithmic", "mixture"}, default="linear"
        How the weight falls with the difficulty: from one to zero at the pace, or gradually.
        ``"linear"`` is the paper's.
    scale : {"class_share", "share", "minmax", "absolute", "objective"}, default="absolute"
        What the pace means: the share of the examples admitted among those of each assigned label,
        or among all; a place between the easiest and the hardest; a difficulty (the paper's Eq. 5);
        or a difficulty times C (the paper's OP(6)).
    start : float, default=0.6
        The pace λ to begin with.
    growth : float, default=1.05
        The factor by which the pace grows, μ in the paper. Not used by the schedule ``"spread"``.
    end : float, default=1.0
        The pace at which it stops growing.
    schedule : {"spread", "carry", "once", "restart"}, default="spread"
        How the pace grows with C: evenly over the path of C; one step with each step of C; all
        steps at the first C; or from the start for each C.
    cv : int or None, default=None
        Number of folds: difficulties are measured by models that have not seen the example, which
        takes as many times longer. None: by the model itself. ``"leave_one_out"`` does not need it.
    weight_floor : float, default=0.03
        Examples that are not admitted cost at least this share of their loss when labels are
        assigned, so that they keep a sensible label until they are admitted.

    Examples
    --------
    >>> import numpy as np
    >>> from skpll.pacing import Pace, Stage
    >>> pace = Pace(weights="hard", scale="share")
    >>> pace.weigh(np.array([0.1, 0.9, 0.2, 0.4, 0.3]), Stage(C=1.0, pace=0.6)).tolist()
    [1.0, 0.0, 1.0, 0.0, 1.0]
    """

    difficulty: DifficultyName | Difficulty = "leave_one_out"
    weights: RegularizerName = "linear"
    scale: ScaleName = "absolute"
    start: float = 0.6
    growth: float = 1.05
    end: float = 1.0
    schedule: ScheduleName = "spread"
    cv: int | None = None
    weight_floor: float = 0.03

    def check(self) -> None:
        """Raise ValueError for parameters that make no pace."""
        constraints: Constraints = {
            "difficulty": [StrOptions({LEAVE_ONE_OUT, *DIFFICULTIES}), callable],
            "weights": [StrOptions(set(REGULARIZERS))],
            "scale": [StrOptions(set(SCALES))],
            "start": [POSITIVE],
            "growth": [Interval(Real, 1, None, closed="left")],
            "end": [POSITIVE],
            "schedule": [StrOptions(set(SCHEDULES))],
            "cv": [Interval(Integral, 2, None, closed="left"), None],
            "weight_floor": [Interval(Real, 0, 1, closed="both")],
        }
        validate_parameter_constraints(constraints, self.get_params(deep=False), "Pace")
        if self.start > self.end:
            raise ValueError(
                f"start, end: a pace can't grow from {self.start} to {self.end}; choose a start "
                "that is not above the end."
            )
        if self.growth <= 1 and self.schedule in ("restart", "once"):
            raise ValueError(
                f"growth: a pace that grows by {self.growth} never ends; use 1.05, or "
                'schedule="spread".'
            )

    def stages(self, path: Sequence[float]) -> list[Stage]:
        """Return all stages for a path of regularization constants."""
        self.check()
        return list(SCHEDULES[self.schedule](path, self.start, self.growth, self.end))

    def measure(
        self, losses: Floats, assigned: NDArray[np.int64], candidates: CandidateSets
    ) -> Floats:
        """Measure the difficulty of every example.

        Parameters
        ----------
        losses : array of shape (number of candidates in all,)
            The loss of each candidate label, in the order of ``candidates.indices``.
        assigned : int array of shape (n,)
            Where the assigned label of each example stands in ``candidates.indices``.
        candidates : CandidateSets
            The candidate sets.
        """
        if self.difficulty == LEAVE_ONE_OUT:
            raise ValueError(
                "difficulty: 'leave_one_out' is measured by SPPLL and SelfPaced; use 'loss', "
                "'gap', 'entropy' or a function."
            )
        if isinstance(self.difficulty, str):
            return DIFFICULTIES[self.difficulty](losses, assigned, candidates)
        found = np.asarray(self.difficulty(losses, assigned, candidates), dtype=np.float64)
        if found.shape != (len(candidates),) or np.isnan(found).any():
            raise ValueError(
                "difficulty: the function has to return one number for each of the "
                f"{len(candidates)} examples, and no NaN."
            )
        return found

    def weigh(
        self,
        difficulty: Floats,
        stage: Stage,
        importance: Floats | None = None,
        labels: Labels | None = None,
    ) -> Floats:
        """Turn difficulties into weights at the pace of the given stage.

        Parameters
        ----------
        difficulty : array of shape (n,)
            The difficulty of each example.
        stage : Stage
            The regularization constant and the pace.
        importance : array of shape (n,), optional
            How much each example counts in a share; equal weights by default.
        labels : int array of shape (n,), optional
            The assigned label of each example; one for all by default.

        Returns
        -------
        weights : array of shape (n,)
            Between zero and one.
        """
        counts = np.ones(len(difficulty)) if importance is None else importance
        labels = np.zeros(len(difficulty), dtype=np.intp) if labels is None else labels
        scaled = SCALES[self.scale](difficulty, stage.C, counts, labels)
        return REGULARIZERS[self.weights].weights(scaled, stage.pace)


# -- estimators that have a pace -----------------------------------------------------------

OLD_NAMES = {f"pace_{name}": name for name in ("start", "growth", "end", "cv")}
OLD_NAMES |= {name: name for name in ("difficulty", "weights", "scale", "schedule", "weight_floor")}
"""Parameters of estimators up to version 0.1, and what they are called in `Pace`."""

Class = TypeVar("Class", bound=type)


class Paced:
    """Mixin of estimators with a parameter `pace`, a `Pace` or None for the method's own."""

    pace: Pace | None
    _own_pace: ClassVar[dict[str, object]] = {}

    def _current_pace(self) -> Pace:
        """Return a copy of the pace, with the method's own parameters where it is None."""
        return Pace(**self._own_pace) if self.pace is None else clone(self.pace)  # type: ignore[arg-type]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; those of the pace too, as ``pace__start``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of nested objects.

        Returns
        -------
        dict
        """
        found: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        if deep and self.pace is None:
            own = self._current_pace().get_params()
            found |= {f"pace__{name}": value for name, value in own.items()}
        return found

    def set_params(self, **params: object) -> Self:
        """Change parameters by name; those of the pace as ``pace__start``.

        Parameters
        ----------
        **params : object
            The parameters.

        Returns
        -------
        self
        """
        params = renamed_pace_parameters(params)
        if self.pace is None and "pace" not in params and any(map(_is_of_pace, params)):
            self.pace = self._current_pace()
        return super().set_params(**params)  # type: ignore[misc]

    def _validate_params(self) -> None:
        super()._validate_params()  # type: ignore[misc]
        self._current_pace().check()


def with_pace_parameters(cls: Class) -> Class:
    """Let a constructor take parameters of the pace, as ``pace__start`` or by their old names.

    Parameters
    ----------
    cls : type
        A class derived from `Paced`.
    """
    construct = cls.__init__  # type: ignore[misc]

    @wraps(construct)
    def __init__(self: Any, *args: object, **parameters: object) -> None:
        parameters = renamed_pace_parameters(parameters)
        of_pace = {name: parameters.pop(name) for name in [*parameters] if _is_of_pace(name)}
        construct(self, *args, **parameters)
        if of_pace:
            self.pace = self._current_pace()  # the caller's object stays as it is
            self.set_params(**of_pace)

    cls.__init__ = __init__  # type: ignore[misc]
    return cls


def renamed_pace_parameters(parameters: dict[str, object]) -> dict[str, object]:
    """Return parameters with the old names of those of the pace replaced, with a warning."""
    old = sorted(OLD_NAMES.keys() & parameters)
    if old:
        new = ", ".join(f"{OLD_NAMES[name]}=…" for name in old)
        warnings.warn(
            f"{', '.join(old)}: now parameters of the pace; use pace=Pace({new}).",
            FutureWarning,
            stacklevel=3,
        )
    new_names = {name: f"pace__{OLD_NAMES[name]}" for name in old}
    return {new_names.get(name, name): value for name, value in parameters.items()}


def _is_of_pace(name: str) -> bool:
    return name.startswith("pace__")
