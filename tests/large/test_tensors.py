"""PL-LOO on PyTorch tensors gives what it gives on arrays."""

import os
import subprocess
import sys

import pytest
import sklearn
from sklearn.utils.fixes import parse_version

pytest.importorskip("torch", reason="PyTorch is optional")


def run_in_its_own_process(code):
    """scikit-learn dispatches only if SciPy was imported ready for it."""
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


AGREES = """
import numpy as np, sklearn, torch
from skpll import PLLOO
from skpll.datasets import make_partial_classification
from skpll.engine.limits import LIMITS

X, S, y = make_partial_classification(3000, 10, 6, p=0.8, r=2, class_sep=1.0, random_state=0)
voted = S.with_weights(np.random.default_rng(0).integers(1, 4, len(S.indices)))
weights = np.random.default_rng(1).uniform(0.5, 2, len(S))
groups = np.arange(len(S)) // 3
LIMITS.rows_in_memory = {many}
for settings in (
    dict(kernel="linear"),
    dict(kernel="rbf", gamma=1.0, alpha=0.1, n_landmarks=60),
    dict(kernel="laplacian", gamma=0.5, alpha=0.1, n_landmarks=60, noise="auto"),
):
    settings = dict(n_landmarks=60) | settings
    for dtype, sets in ((np.float64, voted), (np.float32, S)):
        rows = X.astype(dtype)
        usual = PLLOO(**settings).fit(rows, sets, weights, groups)
        with sklearn.config_context(array_api_dispatch=True):
            tensor = torch.as_tensor(rows)
            model = PLLOO(**settings).fit(tensor, sets, torch.as_tensor(weights), groups)
            answers = [model.predict_proba(tensor), model.decision_function(tensor)]
            labels = model.predict(tensor)
            for part in answers:
                assert type(part) is torch.Tensor and part.dtype == tensor.dtype
            assert type(labels) is torch.Tensor and labels.dtype == torch.int64
        near = dict(atol=1e-4 if dtype == np.float32 else 1e-6, rtol=0)
        np.testing.assert_allclose(
            model.label_distributions_.data, usual.label_distributions_.data, **near
        )
        np.testing.assert_allclose(answers[0].numpy(), usual.predict_proba(rows), **near)
        assert (labels.numpy() == usual.predict(rows)).mean() > 0.999
assert type(PLLOO(**settings).fit(tensor, S).predict(tensor)) is np.ndarray  # no dispatch
"""


@pytest.mark.parametrize("many", [300, 50_000])
def test_tensors_agree_with_arrays(many):
    run_in_its_own_process(AGREES.format(many=many))


CHOSEN = """
import numpy as np, sklearn, torch
from skpll import PLLOO
from skpll.datasets import make_partial_classification
from skpll.engine.limits import LIMITS

X, S, y = make_partial_classification(1500, 8, 5, p=0.8, r=2, class_sep=1.0, random_state=0)
LIMITS.rows_in_memory = 300
for settings in ({}, dict(kernel="linear"), dict(noise="auto", gamma=0.5)):
    usual = PLLOO(n_landmarks=60, **settings).fit(X, S)
    with sklearn.config_context(array_api_dispatch=True):
        model = PLLOO(n_landmarks=60, **settings).fit(torch.as_tensor(X), S)
    for name in ("kernel_", "gamma_", "alpha_", "prior_strength_"):
        assert getattr(model, name) == getattr(usual, name)
    for found, expected in zip(model.search_.trials, usual.search_.trials, strict=True):
        assert abs(found.likelihood - expected.likelihood) < 1e-3
    assert abs(model.temperature_ - usual.temperature_) < 1e-3
"""


def test_choices_on_the_device():
    """The kernels that are tried out stay tensors; the choice is that on arrays."""
    run_in_its_own_process(CHOSEN)


CHECKED = """
import unittest, warnings
from sklearn.utils.estimator_checks import estimator_checks_generator
from skpll import PLLOO

warnings.simplefilter("ignore")
for estimator, check in estimator_checks_generator(PLLOO()):
    if "array_api" in check.func.__name__:
        try:
            check(estimator)
        except unittest.SkipTest:
            pass
"""


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="checks before scikit-learn 1.9 want the classes as tensors, too",
)
def test_checks_of_scikit_learn_for_other_arrays():
    run_in_its_own_process(CHECKED)


GUARDED = """
import numpy as np, sklearn, torch
from skpll import PLLOO
from skpll.datasets import make_partial_classification
from skpll.engine.limits import LIMITS

to_cpu = torch.Tensor.cpu

def cpu(tensor):
    copy = to_cpu(tensor).detach().clone()
    copy.may_be_converted = True
    return copy

def guarded(convert):
    def refuse_or_convert(tensor, *args, **kwargs):
        if not getattr(tensor, "may_be_converted", False):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        return convert(tensor, *args, **kwargs)
    return refuse_or_convert

torch.Tensor.cpu = cpu
torch.Tensor.__array__ = guarded(torch.Tensor.__array__)
torch.Tensor.numpy = guarded(torch.Tensor.numpy)

X, S, y = make_partial_classification(3000, 10, 6, p=0.8, r=2, class_sep=1.0, random_state=0)
LIMITS.rows_in_memory = {many}
rows = X.astype(np.float32)
for settings in ({{"kernel": "linear"}}, {{"n_landmarks": 60}}):
    usual = PLLOO(**settings).fit(rows, S).predict(rows)
    with sklearn.config_context(array_api_dispatch=True):
        tensor = torch.as_tensor(rows)
        model = PLLOO(**settings).fit(tensor, S)
        assert (cpu(model.predict(tensor)).numpy() == usual).mean() > 0.99
        assert type(model.predict_proba(tensor)) is torch.Tensor
"""


@pytest.mark.parametrize("many", [300, 50_000])
def test_nothing_is_converted_that_a_gpu_would_refuse(many):
    run_in_its_own_process(GUARDED.format(many=many))
