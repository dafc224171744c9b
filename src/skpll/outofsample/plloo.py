"""Former home of `skpll.leave_one_out.plloo`."""

from skpll.leave_one_out.plloo import PLLOO

__all__ = ["PLLOO"]
