# The public names of skpll and where each is defined. `__init__.py` reads this file and imports a
# name when it is first used, so that `import skpll` is cheap. To register a method, add one line.
from . import baselines as baselines
from . import comparison as comparison
from . import crowd as crowd
from . import datasets as datasets
from . import deep as deep
from . import experiments as experiments
from . import metrics as metrics
from . import model_selection as model_selection
from . import plotting as plotting
from . import solvers as solvers
from ._version import __version__ as __version__
from .base import PartialLabelClassifier as PartialLabelClassifier
from .candidates import CandidateSets as CandidateSets
from .candidates import as_candidates as as_candidates
from .coding.paloc import PALOC as PALOC
from .coding.plecoc import PLECOC as PLECOC
from .diagnosis import diagnose as diagnose
from .leave_one_out.calibration import CalibratedCandidatesCV as CalibratedCandidatesCV
from .leave_one_out.crossfit import CrossFitClassifier as CrossFitClassifier
from .leave_one_out.plloo import PLLOO as PLLOO
from .leave_one_out.stacking import StackedCandidates as StackedCandidates
from .margin.clpl import CLPL as CLPL
from .margin.m3pl import M3PL as M3PL
from .margin.plsvm import PLSVM as PLSVM
from .margin.sppll import SPPLL as SPPLL
from .mixture.lsbcmm import LSBCMM as LSBCMM
from .neighbors.ipal import IPAL as IPAL
from .neighbors.plknn import PLKNN as PLKNN
from .neighbors.plleaf import PLLEAF as PLLEAF
from .registry import all_methods as all_methods
from .regression.em import EM as EM
from .regression.lalo import LALO as LALO
from .regression.plaggd import PLAGGD as PLAGGD
from .regression.plaggd import PLCL as PLCL
from .regression.sure import SURE as SURE
from .self_paced import SelfPaced as SelfPaced
from .tables.disambiguate import disambiguate as disambiguate

__all__: list[str]
