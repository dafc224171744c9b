"""Work for the tests of the runner: quick, and as badly behaved as real work can be."""

import hashlib
import os
import signal
import tempfile
import time
from pathlib import Path


def measurement(task):
    """Return a result that depends on the definition and on nothing else."""
    number = int(hashlib.sha256(task.definition.encode()).hexdigest()[:8], 16) / 16**8
    return {
        "metrics": {"accuracy": number},
        "chosen": {},
        "seconds": 0.0,
        "fit_seconds": 0.0,
        "n_train": 1,
        "n_test": 1,
    }


def quick(task, folder):
    """Do nothing."""
    del folder
    return measurement(task)


def logged(task, folder):
    """Take a few milliseconds, and leave a line in the file that FAKE_WORK_LOG names."""
    path = Path(os.environ["FAKE_WORK_LOG"])
    note = path.with_suffix(f".{os.getpid()}")
    note.write_text(folder)
    note.replace(path.with_suffix(".folder"))
    with path.open("a") as log:
        log.write(f"{task.key}\n")
    time.sleep(0.01)
    return measurement(task)


def run_logged(log, specification, path):
    """Run an experiment with `logged`, two tasks at a time."""
    from skpll.experiments import run_experiment

    os.environ["FAKE_WORK_LOG"] = log
    tempfile.tempdir = str(Path(log).parent)  # a killed run may leave an empty folder there
    run_experiment(specification, path, jobs=2, work="fake_work:logged")


def badly_behaved(task, folder):
    """Behave as the number of the split says; behave well if the file FAKE_WORK_CURED is there."""
    del folder
    split = task.split.split
    if "FAKE_WORK_CURED" not in os.environ:
        if split == 0:
            raise RuntimeError("the first line\nand the second")
        if split == 1:
            time.sleep(3600)
        if split == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if split == 3:
            os._exit(7)
    print("noise on standard output")  # noqa: T201
    return measurement(task)


def threads(task, folder):
    """Tell how many threads libraries may use."""
    import sklearn.linear_model  # noqa: F401  (loads the libraries of NumPy, SciPy and OpenMP)
    from threadpoolctl import threadpool_info

    del folder
    pools = [found["num_threads"] for found in threadpool_info()]
    chosen = {"environment": os.environ["OMP_NUM_THREADS"], "pools": pools}
    return measurement(task) | {"chosen": chosen}


def arrays(task, folder):
    """Return NumPy's numbers."""
    import numpy as np

    del folder
    chosen = {"a": np.float64(1.5), "b": np.arange(2), "c": np.int64(3)}
    return measurement(task) | {"chosen": chosen, "metrics": {"accuracy": np.float32(0.5)}}


def long_error(task, folder):
    """Fail at length."""
    del task, folder
    raise KeyError("9" * 1000)
