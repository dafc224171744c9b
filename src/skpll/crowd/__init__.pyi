from ._agreement import Agreement as Agreement
from ._agreement import AlikePair as AlikePair
from ._agreement import agreement as agreement
from ._agreement import alike_pairs as alike_pairs
from ._agreement import krippendorff_alpha as krippendorff_alpha
from ._audit import AccuracyEstimate as AccuracyEstimate
from ._audit import AuditSample as AuditSample
from ._audit import ReviewPlan as ReviewPlan
from ._audit import draw_audit as draw_audit
from ._audit import estimate_accuracy as estimate_accuracy
from ._audit import plan_review as plan_review
from ._audit import recalibrated as recalibrated
from ._models import METHODS as METHODS
from ._models import Aggregation as Aggregation
from ._models import AnnotatorModel as AnnotatorModel
from ._models import aggregate as aggregate
from ._models import aggregate_votes as aggregate_votes
from ._models import fit_dawid_skene as fit_dawid_skene
from ._models import fit_majority as fit_majority
from ._models import fit_one_coin as fit_one_coin
from ._votes import VoteTable as VoteTable

__all__: list[str]
