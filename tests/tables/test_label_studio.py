"""Label Studio: its exports are read as votes or candidates, and what is written it can import."""

import json

import numpy as np
import pandas as pd
import pytest

from skpll.cli import DONE, WRONG_INPUT, main
from skpll.tables._extra import TableWarning
from skpll.tables.formats import read_table
from skpll.tables.label_studio import own_labels
from skpll.tables.labels import LabelSource


def chosen(*labels, control="mood"):
    value = {"choices": list(labels)}
    return [{"from_name": control, "to_name": "text", "type": "choices", "value": value}]


def annotation(who, *labels, **more):
    """An annotation with the keys of an export."""
    keys = {"id": 7, "was_cancelled": False, "ground_truth": False, "lead_time": 4.2, "task": 1}
    return {**keys, "completed_by": who, "result": chosen(*labels), **more}


def task(number, data, annotations=(), predictions=()):
    """A task with the keys of an export."""
    keys = {"id": number, "project": 3, "created_at": "2024-03-09T21:52:49.513742Z", "meta": {}}
    return {**keys, "data": data, "annotations": list(annotations), "predictions": predictions}


def written(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def export(tmp_path):
    """Sixty tasks, most with the votes of three annotators, and the truth."""
    random = np.random.default_rng(0)
    truth = random.choice(["calm", "glad", "sad"], 60)
    names = ["calm", "glad", "sad"]
    tasks = []
    for row, label in enumerate(truth):
        place = float(names.index(label)) * 3
        data = {"text": f"This is the line {row} of the diary.", "x": place + random.normal()}
        voters = [5, 6, {"id": 9, "email": "ann@example.org"}]
        votes = [
            annotation(who, label if random.random() < skill else str(random.choice(names)))
            for who, skill in zip(voters, (0.9, 0.8, 0.7), strict=True)
        ]
        votes.append(annotation(5, "sad", was_cancelled=True))
        if row < 10:
            votes.append(annotation(1, str(label), ground_truth=True))
        guess = {"model_version": "v1", "score": 0.4, "result": chosen("glad")}
        tasks.append(task(100 + row, data, votes, [guess]))
    return written(tmp_path / "export.json", tasks), tasks, truth


def test_annotations_are_votes(export):
    table = read_table(export[0])
    assert table.tasks.control == ("mood", "text")
    assert table.names == ["task_id", "ground_truth", "text", "x"]
    assert table.column("task_id").to_pylist() == list(range(100, 160))
    votes = table.tasks.votes
    assert (votes.names, votes.n_rows) == (["item", "annotator", "label"], 180)
    assert set(votes.column("annotator").to_pylist()) == {"5", "6", "ann@example.org"}
    assert table.column("ground_truth").to_pylist()[:10] == export[2][:10].tolist()
    assert table.column("ground_truth").null_count == 50


def test_votes_become_labels_tasks_and_come_back(export, tmp_path, capsys):
    path, tasks, truth = export
    out = tmp_path / "tasks.json"
    decisions = tmp_path / "decisions.csv"
    decisions.write_text("row,id,label,note\n3,102,calm,\n")
    words = ["disambiguate", str(path), "--out", str(tmp_path / "labels.csv"), "--json"]
    words += ["--decisions", str(decisions), "--truth", "ground_truth"]
    assert main(words) == DONE
    result = json.loads(capsys.readouterr().out)
    assert "ground_truth" not in result["features"]
    assert result["truth"]["known"] == 10
    labels = pd.read_csv(tmp_path / "labels.csv")
    assert np.mean(labels["label"] == truth) > 0.9
    words[3] = str(out)
    assert main(words) == DONE
    back = json.loads(out.read_text())
    assert [item["id"] for item in back] == list(range(100, 160))
    assert [item["data"] for item in back] == [item["data"] for item in tasks]
    for row, item in enumerate(back):
        voted = {part["result"][0]["value"]["choices"][0] for part in tasks[row]["annotations"][:3]}
        if row == 2:
            assert item["annotations"] == [{"result": [{"id": "r3c0", **chosen("calm")[0]}]}]
            assert "predictions" not in item
            continue
        assert "annotations" not in item
        offered = [part["result"][0]["value"]["choices"][0] for part in item["predictions"]]
        scores = [part["score"] for part in item["predictions"]]
        assert set(offered) == voted
        assert scores == sorted(scores, reverse=True)
        assert scores[0] == pytest.approx(labels["confidence"][row], abs=1e-4)
        assert offered[0] == labels["label"][row]
        first = item["predictions"][0]
        assert first["model_version"] == "skpll plloo"
        assert (first["result"][0]["from_name"], first["result"][0]["to_name"]) == ("mood", "text")
    ids = [r["id"] for item in back for part in item.get("predictions", []) for r in part["result"]]
    assert len(set(ids)) == len(ids)
    with pytest.warns(TableWarning, match="predictions only: 59"):
        again = read_table(out)
    sets = LabelSource(**own_labels(again)).read(again).candidates.to_lists()
    assert set(sets[2]) == {"calm"}
    for row in {*range(60)} - {2}:
        voted = {part["result"][0]["value"]["choices"][0] for part in tasks[row]["annotations"][:3]}
        assert set(sets[row]) == voted


def test_several_choices_and_predictions_are_candidates(tmp_path):
    guesses = [
        {"model_version": "a", "score": 0.6, "result": chosen("b")},
        {"model_version": "b", "score": 0.3, "result": chosen("c")},
    ]
    tasks = [
        task(1, {"text": "one"}, [annotation(5, "a", "b"), annotation(6, "b")], guesses),
        task(2, {"text": "two"}, predictions=guesses),
        task(3, {"text": "three"}, [annotation(5, "c")], [17]),  # a number: not exported
    ]
    with pytest.warns(TableWarning, match="predictions only: 1"):
        table = read_table(written(tmp_path / "t.json", tasks))
    assert table.tasks.votes is None
    assert table.column("candidates").to_pylist() == [["a", "b"], ["b", "c"], ["c"]]
    labels = LabelSource(**own_labels(table)).read(table)
    assert [set(found) for found in labels.candidates.to_lists()] == [
        {"a", "b"},
        {"b", "c"},
        {"c"},
    ]
    assert labels.columns == ("task_id", "candidates")


def test_choices_of_one_tag_are_read_and_the_others_named(tmp_path):
    result = chosen("a") + chosen("yes", control="spam")
    other = chosen("no", control="spam")
    tasks = [
        task(1, {"text": "one"}, [annotation(5, "b", result=result)]),
        task(2, {"text": "two"}, [annotation(5, "b"), annotation(6, "b", result=other)]),
    ]
    with pytest.warns(TableWarning, match="'spam'"):
        table = read_table(written(tmp_path / "t.json", tasks + tasks[1:]))
    assert table.tasks.votes.column("label").to_pylist() == ["a", "b", "b"]


def test_a_plain_list_of_objects_is_a_table(tmp_path):
    rows = [{"id": 1, "annotator": 4, "mood": "sad"}, {"id": 1, "mood": "glad", "annotator": 5}]
    table = read_table(written(tmp_path / "min.json", rows))
    assert table.tasks is None
    assert own_labels(table) == {}
    assert table.names == ["id", "annotator", "mood"]
    for wrong in ("[1, 2]", "[]", '"text"', "{"):
        (tmp_path / "wrong.json").write_text(wrong)
        with pytest.raises(ValueError, match=r"wrong\.json: (expected a list|not JSON)"):
            read_table(tmp_path / "wrong.json")


def test_a_table_becomes_tasks_that_show_its_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    x = random.normal(size=30).round(3)
    frame = pd.DataFrame({"x": x, "story": [f"once upon a time there was {i}" for i in range(30)]})
    frame["who"] = np.where(x > 0, "hero|king", "king")
    frame.loc[3:8, "who"] = "hero"
    frame.to_csv("t.csv", index=False)
    words = ["disambiguate", "t.csv", "--candidates", "who", "--features", "x", "--quiet"]
    assert main([*words, "--out", "tasks.json"]) == DONE
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert list(tasks[0]) == ["data", "predictions"]
    assert tasks[0]["data"]["story"] == frame["story"][0]
    result = tasks[0]["predictions"][0]["result"][0]
    assert (result["from_name"], result["to_name"]) == ("label", "story")


def test_commands_for_votes_read_exports(export, tmp_path, capsys):
    path = str(export[0])
    out = tmp_path / "labels.csv"
    assert main(["aggregate", path, "--out", str(out), "--quiet"]) == DONE
    assert np.mean(pd.read_csv(out)["label"] == export[2]) > 0.8
    capsys.readouterr()
    assert main(["inspect", path, "--json"]) == DONE
    found = json.loads(capsys.readouterr().out)
    assert found["labels"]["labels"] == 3
    np.save(tmp_path / "v.npy", np.array([[item["data"]["x"], 1.0] for item in export[1]]))
    words = ["--embeddings", str(tmp_path / "v.npy"), "--out", str(out), "--quiet"]
    assert main(["disambiguate", path, "--exclude", "x,text", *words]) == DONE
    assert np.mean(pd.read_csv(out)["label"] == export[2]) > 0.9
    unlabelled = [{"data": item["data"]} for item in export[1]]
    bare = written(tmp_path / "bare.json", unlabelled)
    assert main(["disambiguate", str(bare), "--out", str(out)]) == WRONG_INPUT
    assert "--candidates" in capsys.readouterr().err
