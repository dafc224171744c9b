# The public names of skpll.deep and where each is defined.
from . import losses as losses
from .augmentation import compose as compose
from .augmentation import crop as crop
from .augmentation import cutout as cutout
from .augmentation import flip as flip
from .classifier import DeepPartialLabelClassifier as DeepPartialLabelClassifier

__all__: list[str]
