"""Votes of annotators: labels, how far each annotator can be trusted, and how well they agree.

`aggregate` turns votes (item, annotator, label) into one label per item. `agreement` measures how
well annotators agree, and `draw_audit` and `estimate_accuracy` check labels by a random sample that
a person decides.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
