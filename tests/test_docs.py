"""The documentation: its examples give what they show, and its links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)
DECIMAL = r"\d+\.\d+"


def examples_of(page):
    return "\n".join(block for block in BLOCK.findall(page.read_text("utf-8")) if ">>>" in block)


class NearlyEqual(doctest.OutputChecker):
    """Decimal numbers may differ a little: other versions of other packages round otherwise."""

    def check_output(self, want, got, flags):
        if super().check_output(want, got, flags):
            return True
        if re.sub(DECIMAL, "#", want) != re.sub(DECIMAL, "#", got):
            return False
        said, found = (list(map(float, re.findall(DECIMAL, text))) for text in (want, got))
        return found == pytest.approx(said, abs=0.02)


@pytest.mark.parametrize(
    "page",
    [page for page in sorted((ROOT / "docs").glob("*.md")) if examples_of(page)],
    ids=lambda page: page.stem,
)
def test_examples_of_the_guide(page):
    test = doctest.DocTestParser().get_doctest(examples_of(page), {}, page.stem, str(page), 0)
    runner = doctest.DocTestRunner(NearlyEqual(), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0


def test_the_python_of_the_readme_prints_what_it_says(capsys):
    text = README.read_text("utf-8")
    exec(BLOCK.search(text)[1], {})
    printed = [float(share) for share in re.findall(rf"({DECIMAL})%", capsys.readouterr().out)]
    said = re.search(rf"It prints ({DECIMAL}) % and ({DECIMAL}) %", text).groups()
    assert printed == pytest.approx([float(share) for share in said], abs=1.0)


def test_the_readme_can_be_read_in_one_go():
    assert len(README.read_text("utf-8").splitlines()) <= 120


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_links_of_pages_beside_the_documentation(page):
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target
