"""Former home of `skpll.leave_one_out.calibration`."""

from skpll.leave_one_out.calibration import CalibratedCandidatesCV

__all__ = ["CalibratedCandidatesCV"]
