"""Documentation of parameters and attributes that several methods share, written once.

A line ``<<tol, verbose>>`` in the docstring of a method stands for the entries of these names.
"""

from __future__ import annotations

import re
from textwrap import indent

__all__ = ["fill_in"]

_ENTRIES = """
kernel : {"rbf", "laplacian"}, default="rbf"
    ``"rbf"`` falls exponentially with the square of the distance, ``"laplacian"`` with the
    distance.
gamma : float, default=0.5
    How fast the kernel falls, with distances in units of the mean distance of two different
    examples.
tol : float, default=1e-4
    Rounds end when no confidence changes by more than this.
search : {"exact", "approximate"}, default="exact"
    How neighbours are found. The approximate search is for hundreds of thousands of examples
    and needs pynndescent (``pip install skpll[approx]``).
n_jobs : int, optional
    Number of parallel searches. The result does not depend on it.
verbose : int, default=0
    Whether to show a progress bar.
classes_ : array of shape (q,)
    The labels, sorted.
transduction_ : array of shape (n,)
    The label decided for each training example.
label_distributions_ : sparse array of shape (n, q)
    The final confidence in each candidate of each training example.
n_iter_ : int
    Number of rounds.
history_ : list of dict
    A record of each round: ``change``, the largest change of a confidence.
n_features_in_ : int
    Number of features seen in `fit`.
feature_names_in_ : array of str
    Their names, if `X` has any.
"""

SHARED = {
    entry.split(" :")[0]: entry.rstrip() for entry in re.split(r"\n(?=\w)", _ENTRIES) if entry
}


def fill_in(doc: str) -> str:
    """Replace the lines that name shared entries by the entries themselves."""

    def entries(line: re.Match[str]) -> str:
        names = line[2].split(", ")
        return indent("\n".join(SHARED[name] for name in names), line[1])

    return re.sub(r"^( *)<<([\w, ]+)>>$", entries, doc, flags=re.MULTILINE)
