from .assignment import Assignment as Assignment
from .assignment import assign_labels as assign_labels
from .crammer_singer import fit_crammer_singer as fit_crammer_singer

__all__: list[str]
