"""Every command and every line of Python in the page on tables does what it says."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skpll.cli import DONE

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix("$ skpll ")
    for block in re.findall(r"^```console\n(.*?)^```", TEXT, re.S | re.M)
    for line in block.splitlines()
    if line.startswith("$ skpll ") and "digits.csv" not in line  # see `test_example`
]
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.S | re.M)
ELSEWHERE = ("sentence_transformers", "timm")  # packages that are not part of this one

N = 40
RANDOM = np.random.default_rng(0)
TRUTH = RANDOM.integers(2, size=N)
AMBIGUOUS = RANDOM.random(N) < 0.5


def names(first, second):
    labels = np.where(TRUTH == 1, first, second)
    return [
        f"{first}|{second}" if both else label
        for both, label in zip(AMBIGUOUS, labels, strict=True)
    ]


def numbers():
    return (TRUTH[:, np.newaxis] + RANDOM.normal(scale=0.2, size=(N, 2))).round(3)


def people(candidates):
    frame = pd.DataFrame(numbers(), columns=["height", "age"])
    return frame.assign(name=[f"person {i}" for i in range(N)], names=candidates)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = people(names("adult", "child"))
    known.to_csv("people.csv", index=False)
    known.drop(columns="names").to_csv("others.csv", index=False)
    words = np.where(TRUTH == 1, "how many people live there", "what does the long word mean")
    texts = [f"{text} in {i}" for i, text in enumerate(words)]
    pd.DataFrame({"question": texts, "title": texts, "source": "web"}).assign(
        topics=names("number", "meaning")
    ).to_csv("questions.csv", index=False)
    spellings = names("oak", "birch")
    spellings[:2] = ["Oak", "BIRCH"]
    people(spellings).to_csv("trees.csv", index=False)
    votes = np.where(TRUTH == 1, "cat", "dog")
    photos = pd.DataFrame(numbers(), columns=["light", "size"]).assign(
        photo=[f"{i}.jpg" for i in range(N)],
        species=names("cat", "dog"),
        **dict.fromkeys(["ann", "bob", "cy"], votes),
    )
    photos.to_csv("photos.csv", index=False)
    long = photos.melt("photo", ["ann", "bob", "cy"], "annotator", "label")
    long.to_csv("votes.csv", index=False)
    np.save("photos.npy", numbers())
    counts = np.c_[3 * TRUTH, 3 * (1 - TRUTH), RANDOM.integers(0, 2, N)]
    pd.DataFrame(counts, columns=["hate_speech", "offensive", "neither"]).assign(
        length=TRUTH + RANDOM.normal(scale=0.1, size=N)
    ).to_csv("tweets.csv", index=False)
    decisions = {"row": [1], "id": ["task 0"], "label": ["adult"]}
    pd.DataFrame(decisions).to_csv("decisions.csv", index=False)
    Path("export.json").write_text(json.dumps(list(map(task, range(N)))), encoding="utf-8")


def task(row):
    """A task of Label Studio, which two people have labelled."""
    choice = {"choices": ["adult" if TRUTH[row] else "child"]}
    result = [{"from_name": "who", "to_name": "text", "type": "choices", "value": choice}]
    votes = [{"id": who, "completed_by": who, "result": result} for who in (1, 2)]
    data = {"height": float(TRUTH[row] + RANDOM.normal(scale=0.2))}
    return {"id": f"task {row}", "data": data, "annotations": votes, "predictions": []}


def test_the_page_has_commands_for_all_parts():
    assert len(COMMANDS) >= 14
    assert {command.split()[0] for command in COMMANDS} >= {"inspect", "disambiguate", "fit"}


def test_every_command(files, run):
    for command in COMMANDS:
        status, _, err = run(*shlex.split(command))
        assert status == DONE, f"{command}: {err}"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_line_of_python(files):
    run_here = [block for block in BLOCKS if not any(name in block for name in ELSEWHERE)]
    votes = pd.read_csv("votes.csv").rename(columns={"photo": "item"})
    rows = {f"{i}.jpg": f"person {i}" for i in range(N)}
    votes.assign(item=votes["item"].map(rows)).to_csv("votes.csv", index=False)
    for block in run_here:
        exec(block, {})
    for block in set(BLOCKS) - set(run_here):
        compile(block, PAGE.name, "exec")
    assert len(run_here) >= 1
