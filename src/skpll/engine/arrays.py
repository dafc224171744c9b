"""Arrays of NumPy and tensors of PyTorch, which is imported only where tensors are passed.

Arrays of other libraries are turned into NumPy's, and answers are brought back to their device.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._array_api import _convert_to_numpy

from skpll._errors import ArgumentError

__all__ = [
    "Matrix",
    "as_dense",
    "as_float64",
    "as_numpy",
    "beside",
    "is_foreign",
    "is_sparse",
    "is_tensor",
    "place",
    "squarable",
    "to_namespace",
]

Matrix = Any
"""A NumPy array, a PyTorch tensor or a SciPy CSR matrix with two dimensions."""

MAX_VALUE = 1e140
"""Sums of squares of larger values may overflow."""


def is_tensor(values: object) -> bool:
    """Return True for a PyTorch tensor."""
    return type(values).__module__.split(".")[0] == "torch" and hasattr(values, "device")


def is_foreign(values: object) -> bool:
    """Return True for an array of another library than NumPy."""
    foreign = hasattr(values, "__array_namespace__") and not isinstance(values, np.ndarray)
    return is_tensor(values) or foreign


def is_sparse(values: object) -> bool:
    """Return True for a SciPy sparse matrix or array."""
    return hasattr(values, "tocsr")


def as_dense(values: Matrix) -> Matrix:
    """Return a dense array of the values of a sparse matrix; others are returned as they are."""
    return values.toarray() if is_sparse(values) else values


def as_numpy(values: Matrix) -> NDArray[Any]:
    """Return a NumPy array on the CPU; sparse matrices are returned as they are."""
    if is_sparse(values):
        return values
    if is_tensor(values):
        return np.asarray(values.cpu())
    if is_foreign(values):
        return np.asarray(_convert_to_numpy(values, values.__array_namespace__()))
    return np.asarray(values)


def to_namespace(values: Matrix, reference: Matrix) -> Matrix:
    """Return an array of the same library, device and dtype as the reference."""
    if is_tensor(reference):
        torch = import_module("torch")
        return torch.as_tensor(values, dtype=reference.dtype, device=reference.device)
    if is_foreign(reference):
        xp = reference.__array_namespace__()
        return xp.asarray(as_numpy(values), dtype=reference.dtype, device=reference.device)
    return np.asarray(as_numpy(values), dtype=reference.dtype)


def beside(values: NDArray[Any], reference: Matrix) -> Matrix:
    """Bring an array of numbers to the library and device of the reference, as it is."""
    if is_tensor(reference):
        return import_module("torch").as_tensor(values, device=reference.device)
    return reference.__array_namespace__().asarray(values, device=reference.device)


def place(values: object) -> tuple[str, str]:
    """Return the names of the library and the device of an array."""
    if not is_foreign(values):
        return "numpy", "cpu"
    return type(values).__module__.split(".")[0], str(getattr(values, "device", "cpu"))


def squarable(X: Matrix) -> Matrix:
    """Return features in a precision in which their squares neither overflow nor vanish.

    Raises
    ------
    ValueError
        If there is none.
    """
    values = X.data if is_sparse(X) else X
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest > MAX_VALUE:
        raise ArgumentError("X", f"has values of {largest:.0e}, too large to square; scale it.")
    single = values.dtype == np.float32
    return as_float64(X) if single and not 1e-15 < largest < 1e15 else X


def as_float64(values: Matrix) -> Matrix:
    """Return an array, a tensor or a sparse matrix in double precision."""
    return values.double() if is_tensor(values) else values.astype(np.float64, copy=False)
