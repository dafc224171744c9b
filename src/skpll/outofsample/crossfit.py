"""Former home of `skpll.leave_one_out.crossfit`."""

from skpll.engine.held_out import Trained, fit_weighted
from skpll.leave_one_out.crossfit import CrossFitClassifier

__all__ = ["CrossFitClassifier", "Trained", "fit_weighted"]
