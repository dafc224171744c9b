"""Mistakes that a type checker finds; each line with a comment is one."""

from skpll import PLKNN, as_candidates
from skpll.pacing import Pace

S = as_candidates([{"cat"}, {"cat", "dog"}])
S["cat"]  # refused
S.sizes = [1, 2]  # refused
PLKNN(neighbors=3)  # refused
Pace(difficulty="typo")  # refused: an option that there is not
