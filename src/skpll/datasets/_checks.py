"""Checks of arguments that the generators share; each names the argument and what was found."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TypeAlias

import numpy as np

Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | None


def check_share(value: object, name: str) -> None:
    """Refuse what is not a number between 0 and 1.

    Parameters
    ----------
    value : object
        What the user gave.
    name : str
        The argument's name, for the message.
    """
    if not (isinstance(value, Real) and 0 <= float(value) <= 1):
        raise ValueError(f"{name}: {value!r} is not a number between 0 and 1.")


def check_count(value: object, name: str, smallest: int, largest: float = math.inf) -> None:
    """Refuse what is not a whole number between two bounds, which are allowed.

    Parameters
    ----------
    value : object
        What the user gave.
    name : str
        The argument's name, for the message.
    smallest : int
        Lower bound.
    largest : float, default=inf
        Upper bound.
    """
    whole = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if whole is not None and smallest <= whole <= largest:
        return
    upper = "" if largest == math.inf else f" and at most {largest}"
    raise ValueError(f"{name}: {value!r} is not a whole number of at least {smallest}{upper}.")


def check_false_count(r: int, n_classes: int) -> None:
    """Refuse a number of false candidates that the classes cannot supply.

    Parameters
    ----------
    r : object
        What the user gave.
    n_classes : int
        Number of classes, the true one included.
    """
    check_count(r, "r", 1)
    if r >= n_classes:
        raise ValueError(
            f"r: {r} false candidates are too many for {n_classes} classes, of which "
            f"{n_classes - 1} are false; lower r, or name further classes if they exist."
        )


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
