"""Arrays of NumPy and tensors of PyTorch, which is imported only where tensors are passed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Matrix",
    "as_dense",
    "as_float64",
    "as_numpy",
    "is_sparse",
    "is_tensor",
    "to_namespace",
]

Matrix = Any
"""A NumPy array, a PyTorch tensor or a SciPy CSR matrix with two dimensions."""


def is_tensor(values: object) -> bool:
    """Return True for a PyTorch tensor."""
    return type(values).__module__.split(".")[0] == "torch" and hasattr(values, "device")


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
    return np.asarray(values.cpu() if is_tensor(values) else values)


def to_namespace(values: Matrix, reference: Matrix) -> Matrix:
    """Return an array of the same library, device and dtype as the reference."""
    if is_tensor(reference):
        torch = import_module("torch")
        return torch.as_tensor(values, dtype=reference.dtype, device=reference.device)
    return np.asarray(values, dtype=reference.dtype)


def as_float64(values: Matrix) -> Matrix:
    """Return an array, a tensor or a sparse matrix in double precision."""
    return values.double() if is_tensor(values) else values.astype(np.float64, copy=False)
