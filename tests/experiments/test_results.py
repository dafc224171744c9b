"""The results as one text: what it tells, and that the text in this repository can be repeated."""

from pathlib import Path

import numpy as np
import pytest

from skpll.datasets import find_dataset
from skpll.experiments import Specification, plan
from skpll.experiments.report import write_results
from skpll.experiments.work import run_task

from .made_up import fill, shipped

KEPT = Path(__file__).parents[2] / "RESULTS.md"


def section(text, name):
    """Cut out what is told about an experiment."""
    commands = (f"`skpll run {name}`", f"`skpll run {name} --quick`")
    parts = text.split("\n### ")
    (found,) = [part for part in parts if any(command in part for command in commands)]
    return found


def rows(text):
    """Read the first table of a section: entries by method and column."""
    lines = text.split("\n\n| ")[1].split("\n\n")[0].splitlines()
    heads, _, *entries = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    return {entry[0]: dict(zip(heads, entry, strict=True)) for entry in entries}


def test_what_is_told(tmp_path):
    def broken(task):
        return "time limit" if task.label == "PL-SVM" and task.dataset == "fgnet" else None

    store = fill(
        tmp_path / "a.db",
        [shipped("table3"), shipped("figure2"), shipped("figure5")],
        absent=["msrcv2"],
        broken=broken,
    )
    text = write_results(store, tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    first, *_, last = text.split("\n## ")
    assert first.startswith("# Results\n\n")
    assert "Does the paper reproduce?" in first
    assert last.startswith("Where these results come from\n\n- ")
    assert "scikit-learn" in last
    table3 = section(text, "table3")
    found = rows(table3)
    assert found["SP-PLL, our pace"]["Lost"].startswith("0.7")
    assert found["PL-SVM"]["FG-NET"] == "–"
    assert "Empty places: PL-SVM on FG-NET (time limit)." in table3
    assert "left out: MSRCv2." in table3
    ranks = table3.split("ranks**")[1]
    assert "| Average rank |" in ranks
    assert "| Best published | 0.767 |" in ranks
    assert "Truth known" not in ranks
    assert "Glass Identification" in section(text, "figure2")
    assert "pace__start = 0.6" in section(text, "figure5")
    for title in (
        "Figures 2 to 4 together",
        "Tables 1 and 2",
        "What the paper's text says",
        "The C that is chosen",
    ):
        assert f"### {title}" in text
    assert "78 (99)" in text
    assert "None" not in text
    assert "nan" not in text


def test_an_experiment_without_results_says_so(tmp_path):
    store = fill(tmp_path / "a.db", [shipped("table3")], broken=lambda task: "killed")
    text = write_results(store, tmp_path / "a.md").read_text(encoding="utf-8")
    assert "0 of " in section(text, "table3")
    assert "nothing was run yet" in text


def test_only_the_comment_at_the_head_tells_what_an_experiment_is(tmp_path):
    text = '# What is it worth?\nname = "a"\n# rows = 5\n[[data]]\nname = "iris"\np = 0.3\n'
    specification = Specification.parse(text + '[[methods]]\nmethod = "plknn"\n')
    store = fill(tmp_path / "a.db", [specification])
    told = write_results(store, tmp_path / "a.md").read_text(encoding="utf-8")
    assert "What is it worth?" in told
    assert "rows = 5" not in told


@pytest.mark.parametrize("label", ["PL-KNN", "IPAL", "Random candidate"])
def test_the_results_that_are_kept_can_be_repeated(label, tmp_path):
    if find_dataset("lost") is None:
        pytest.skip("the file of Lost is not here: set SKPLL_DATA")
    kept = rows(section(KEPT.read_text(encoding="utf-8"), "table3"))[label]
    (head,) = [head for head in kept if head.startswith("Lost")]
    mean, deviation = kept[head].split()[0].strip("*").split("±")
    tasks = plan(Specification.read("table3"), without=["soccer_player"])
    again = [
        run_task(task, str(tmp_path))["metrics"]["accuracy"]
        for task in tasks
        if (task.dataset, task.label) == ("lost", label)
    ]
    assert np.mean(again) == pytest.approx(float(mean), abs=0.0015)
    assert np.std(again, ddof=1) == pytest.approx(float(deviation), abs=0.0015)
