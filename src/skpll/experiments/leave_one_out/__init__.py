"""Asking a model that has not seen the example: the experiments on `PLLOO` and its relatives.

Those in ``specs`` say what it is worth, on real candidate sets and beside what people would do
instead; those in ``studies`` say why. Their seeds were drawn after the constants of the methods had
been chosen.
"""

__all__ = ["EXPERIMENTS", "TITLE"]

TITLE = "Our own method, and what people would do instead"
EXPERIMENTS = ("ambiguity",)
"""Names of the specifications that ``skpll reproduce all`` runs."""
