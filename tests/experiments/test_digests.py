"""Results do not change without notice: those of a small fit of each method are kept."""

import json

import numpy as np
import pytest

from skpll.experiments.tasks import known_methods, method_version

from .refresh_digests import COMMAND, PLACE, digest, same


@pytest.fixture(scope="module")
def kept():
    return json.loads(PLACE.read_text())


@pytest.mark.parametrize("name", [name for name in known_methods() if name != "deep"])
def test_results_change_with_the_version_only(kept, name):
    assert name in kept, f"a new method: {COMMAND} takes it in"
    version = kept[name]["version"]
    assert method_version(name) == version, (
        f"its version is another: {COMMAND} refreshes the digest"
    )
    assert same(digest(name, disturbance=1e-14), kept[name]), (
        f"the results of {name} have changed: make its entry in RESULT_VERSIONS "
        f"{version + 1}, so that stored results count as older than the code, then {COMMAND}"
    )


def test_a_digest_sees_small_changes_and_no_rounding(kept, monkeypatch):
    entry = kept["plknn"]
    for key in ("scores", "confidences"):
        values = np.array(entry[key])
        assert same(entry, entry | {key: values * (1 + 1e-3)})
        assert not same(entry, entry | {key: values * 1.005})
        assert not same(entry, entry | {key: values[:, ::-1]})
        assert not same(entry, entry | {key: values[:-1]})
    monkeypatch.setitem(known_methods()["plknn"].__init__.__kwdefaults__, "weights", "uniform")
    assert not same(digest("plknn"), entry)
