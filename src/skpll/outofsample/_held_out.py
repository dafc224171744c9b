"""Former home of `skpll.engine.held_out`."""

from skpll.engine.held_out import check_takes_candidates, held_out_answers

__all__ = ["check_takes_candidates", "held_out_answers"]
