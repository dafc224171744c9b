"""What there is of the deep part without torch."""

import importlib.util
import subprocess
import sys

import pytest

HAS_DEEP = all(importlib.util.find_spec(name) for name in ("torch", "skorch"))


@pytest.mark.skipif(
    not HAS_DEEP, reason="torch or skorch is not installed: pip install skpll[deep]"
)
def test_the_other_files_of_this_folder_ran():
    from skpll.deep import DeepPartialLabelClassifier

    assert DeepPartialLabelClassifier().loss == "proden"


def test_without_torch_the_message_says_what_to_install():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import skpll.deep\n"
        "try:\n    skpll.deep.DeepPartialLabelClassifier\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "skpll.deep needs torch: pip install 'skpll[deep]'"
