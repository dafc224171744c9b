"""The methods that came after the paper, each under the protocol of its own authors.

Those in ``specs`` are held against published figures; those in ``studies`` show what the scaling of
the features does to them.
"""

__all__ = ["EXPERIMENTS", "TITLE"]

TITLE = "Later methods"
EXPERIMENTS = ("later-halves", "later-folds")
"""Names of the specifications that ``skpll reproduce all`` runs."""
