from .assignment import Assignment as Assignment
from .assignment import assign_labels as assign_labels
from .convex_partial import fit_convex_partial as fit_convex_partial
from .crammer_singer import fit_crammer_singer as fit_crammer_singer
from .partial_margin import fit_partial_margin as fit_partial_margin

__all__: list[str]
