"""Warnings before long fits."""

import pytest

from skpll import PALOC, PLLEAF, PLSVM, _progress


@pytest.mark.parametrize("method", [PALOC, PLLEAF, PLSVM])
def test_warnings_of_long_fits_point_at_the_call_of_fit(method, monkeypatch):
    monkeypatch.setattr(_progress, "LONG_FIT_SECONDS", 0.0)
    X, S = [[0.0], [0.1], [1.0], [1.1]], [{"a"}, {"a", "b"}, {"b"}, {"a", "b"}]
    with pytest.warns(UserWarning, match="minutes on one core") as found:
        method().fit(X, S)
    assert found[0].filename == __file__
