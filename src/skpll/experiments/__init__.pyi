# The public names of skpll.experiments and where each is defined; see skpll/__init__.pyi.
from .comparison import compare_pair as compare_pair
from .comparison import compare_ranks as compare_ranks
from .runner import Summary as Summary
from .runner import run_experiment as run_experiment
from .specification import Specification as Specification
from .specification import absent_data as absent_data
from .specification import plan as plan
from .specification import shipped_specifications as shipped_specifications
from .store import Experiment as Experiment
from .store import Store as Store
from .store import StoreError as StoreError
from .tasks import Task as Task

__all__: list[str]
