from ._aggregate import METHODS as METHODS
from ._aggregate import Aggregation as Aggregation
from ._aggregate import aggregate as aggregate
from ._aggregate import aggregate_votes as aggregate_votes
from ._agreement import Agreement as Agreement
from ._agreement import agreement as agreement
from ._agreement import krippendorff_alpha as krippendorff_alpha
from ._models import AnnotatorModel as AnnotatorModel
from ._models import fit_dawid_skene as fit_dawid_skene
from ._models import fit_majority as fit_majority
from ._models import fit_one_coin as fit_one_coin
from ._votes import VoteTable as VoteTable

__all__: list[str]
