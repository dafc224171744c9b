"""Documentation of parameters and attributes that several methods share, written once.

A line ``<<tol, verbose>>`` in the docstring of a method stands for the entries of these names, and
``<<Attributes: classes_>>`` for a section of them.
"""

from __future__ import annotations

import re
from textwrap import indent

__all__ = ["fill_in"]

_ENTRIES = """
n_neighbors : int, default=10
    Number of neighbours that reconstruct an example. Among fewer examples the default means
    all of them; another number is an error then.
smoothness : float, default=1.0
    The weight μ of the reconstruction of the confidences.
feature_weight : float, default=1.0
    The weight γ of the reconstruction of the features.
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
SHARED["cost_of_kernels"] = """\
Features should have comparable scales: ``make_pipeline(StandardScaler(), {name}())``. Fitting
takes memory of the order of the square of the number of examples, and time of the order of its
cube."""


def fill_in(doc: str, name: str) -> str:
    """Replace the lines that name shared entries by the entries themselves.

    Parameters
    ----------
    doc : str
        The docstring of a class.
    name : str
        The name of the class.
    """

    def entries(line: re.Match[str]) -> str:
        parts = [SHARED[entry] for entry in line[3].split(", ")]
        if line[2]:
            heading = line[2].removesuffix(": ")
            parts = [heading, "-" * len(heading), *parts]
        return indent("\n".join(parts).replace("{name}", name), line[1])

    return re.sub(r"^( *)<<(\w+: )?([\w, ]+)>>$", entries, doc, flags=re.MULTILINE)
