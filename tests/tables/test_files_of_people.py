"""Files as a manager of annotators, a biologist and a data engineer have them.

What goes wrong with them must not go wrong without a word.
"""

import csv
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skpll import as_candidates, disambiguate
from skpll.cli import DONE, WRONG_INPUT
from skpll.datasets import make_partial_labels
from skpll.tables.learning import learn_from_table
from skpll.tables.reading import FrameTable
from skpll.tables.review import rows_to_ask

LABELS = np.array(["ash", "beech", "oak"])


def clouds(n, spread, seed=0, d=4):
    """Give points around a centre for each of three labels; the spread says how clear they are."""
    random = np.random.default_rng(seed)
    truth = random.integers(3, size=n)
    centers = np.array([[0, 0, 1, 1], [2, 0, -1, 1], [0, 2, 1, -1]])[:, :d]
    return centers[truth] / spread + random.normal(scale=0.5, size=(n, d)), truth


def frame_of(X, **more):
    return pd.DataFrame({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, **more})


def answers(truth, skills, seed=0):
    """Let annotators answer, each right so often and wrong at random otherwise."""
    random = np.random.default_rng(seed)
    wrong = (truth + random.integers(1, 3, size=(len(skills), len(truth)))) % 3
    right = random.random((len(skills), len(truth))) < np.array(skills)[:, np.newaxis]
    return LABELS[np.where(right, truth, wrong)]


def majority(given, seed=0):
    """Give the label with most votes, by lot where several have."""
    counts = np.array([(given == label).sum(axis=0) for label in LABELS])
    return LABELS[np.argmax(counts + np.random.default_rng(seed).random(counts.shape), axis=0)]


# -- votes


@pytest.mark.parametrize(
    ("spread", "skills", "gain"),
    [
        (100.0, (0.9, 0.85, 0.8), -0.01),  # features that say nothing
        (100.0, (0.9, 0.9, 0.9, 0.2), 0.0),  # and somebody who answers at random
        (0.8, (0.9, 0.85, 0.8), 0.03),  # good features
        (0.8, (0.9, 0.9, 0.2), 0.05),
        (2.0, (0.8, 0.6), 0.1),  # two who disagree often
    ],
)
def test_votes_with_a_model_are_no_worse_than_their_majority(spread, skills, gain):
    X, truth = clouds(400, spread)
    given = answers(truth, skills)
    people = [f"p{place}" for place in range(len(skills))]
    frame = frame_of(X, **dict(zip(people, given, strict=True)))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "features say nothing" if gain <= 0 else "$")
        result = disambiguate(frame, annotators=people, details=True)
    plain = (majority(given) == LABELS[truth]).mean()
    found = (result.frame["label"].to_numpy() == LABELS[truth]).mean()
    assert found >= plain + gain
    assert found - 0.08 < result.mean_confidence < found + 0.04
    for annotator, skill in zip(result.annotators, skills, strict=True):
        assert annotator.right == pytest.approx(skill, abs=0.1)


def test_clear_majorities_are_overruled_only_for_good_reasons():
    X, truth = clouds(500, 1.5)
    given = answers(truth, (0.85, 0.85, 0.85, 0.85))
    frame = frame_of(X, **{f"p{place}": labels for place, labels in enumerate(given)})
    found = disambiguate(frame, annotators=["p0", "p1", "p2", "p3"])["label"].to_numpy()
    votes = np.array([(given == label).sum(axis=0) for label in LABELS])
    clear = votes.max(axis=0) == 3
    overruled = clear & (found != LABELS[votes.argmax(axis=0)])
    right = found[overruled] == LABELS[truth][overruled]
    assert overruled.sum() == 0 or right.mean() >= 0.5


def test_annotators_on_the_command_line(run):
    X, truth = clouds(120, 0.8)
    given = answers(truth, (0.95, 0.9, 0.3))
    given[2, :10] = "?"
    frame_of(X, ann=given[0], bob=given[1], cy=given[2]).to_csv("t.csv", index=False)
    words = ["t.csv", "--annotators", "ann,bob,cy", "--out", "out.csv", "--report", "page.html"]
    status, out, err = run("disambiguate", *words)
    assert status == DONE, err
    assert "'?' (10 times)" in err
    table = [line.split("│")[1:-1] for line in out.splitlines() if line.startswith("│")]
    assert [cells[0].strip() for cells in table] == ["ann", "bob", "cy"]
    assert [cells[1].strip() for cells in table] == ["120", "120", "110"]
    right = {cells[0].strip(): float(cells[3]) for cells in table}
    assert right["cy"] < 0.5 < 0.8 < right["bob"]
    assert '"name":"cy"' in Path("page.html").read_text(encoding="utf-8")
    result = json.loads(run("disambiguate", *words, "--json")[1])
    assert {found["name"] for found in result["annotators"]} == {"ann", "bob", "cy"}
    assert set(result["features"]) == {"x0", "x1", "x2", "x3"}


def test_rows_without_votes_on_the_command_line(run):
    X, truth = clouds(90, 0.8)
    frame_of(X, key=[f"k{row}" for row in range(90)]).to_csv("t.csv", index=False)
    rows = [(f"k{row}", "ann", LABELS[truth[row]]) for row in range(80)]
    with Path("v.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("item", "annotator", "label"), *rows])
    words = ["disambiguate", "t.csv", "--id", "key", "--votes", "v.csv", "--out", "out.csv"]
    status, _, err = run(*words)
    assert status == WRONG_INPUT
    assert "row 81 of the table (and 9 more) has no vote" in err
    assert "(--empty any)" in err
    assert run(*words, "--empty", "any")[0] == DONE
    found = pd.read_csv("out.csv")
    assert (found["label"] == LABELS[truth]).mean() > 0.9
    assert not found["unanimous"][80:].any()


# -- separators and labels


def test_a_separator_is_found_and_said(run):
    X, truth = clouds(120, 0.8)
    sets = make_partial_labels(LABELS[truth], p=0.7, r=1, random_state=0)
    frame_of(X, names=sets.to_strings(";")).to_csv("t.csv", index=False)
    status, out, _ = run("disambiguate", "t.csv", "--candidates", "names", "--out", "out.csv")
    assert status == DONE
    assert "separator ';', 3 labels" in out
    assert (pd.read_csv("out.csv")["label"] == LABELS[truth]).mean() > 0.9
    result = json.loads(run("inspect", "t.csv", "--candidates", "names", "--json")[1])
    assert result["labels"]["separator"] == ";"
    assert result["labels"]["labels"] == 3


def test_gap_words_and_blanks_are_no_labels_of_their_own(run):
    X, truth = clouds(120, 0.8)
    names = LABELS[truth].astype(object)
    names[:4] = ["?", "NA", "unknown", "oak|n/a"]
    names[4:8] = [f" {names[4]}", f"{names[5]}  ", names[6], "Oak"]
    names[8] = "sugar  maple"
    names[9:12] = "sugar maple"
    frame_of(X, names=names).to_csv("t.csv", index=False)
    words = ["disambiguate", "t.csv", "--candidates", "names", "--out", "out.csv"]
    status, _, err = run(*words)
    assert status == WRONG_INPUT
    assert "row 1 has no candidate, nor have 2 more" in err
    status, out, err = run("inspect", "t.csv", "--candidates", "names")
    assert status == DONE
    assert "row 1 has no candidate, nor have 2 more" in err
    assert "labels;" in out
    status, _, err = run(*words, "--empty", "any")
    assert status == DONE
    assert "taken as empty, not as labels: '?' (once), 'NA' (once)" in err
    assert "labels that look alike: 'Oak' and 'oak'" in err
    assert "labels that only one row has: 'Oak'" in err
    found = pd.read_csv("out.csv")
    assert set(found["label"]) <= {*LABELS, "Oak", "sugar maple"}
    assert (found["confidence"][:3] < 1).all()
    kept = json.loads(run(*words, "--gaps", "NA", "--empty", "any", "--json")[1])
    assert kept["classes"] == 8  # those, "?", "unknown" and "n/a"


# -- predicting for a table that has changed


@pytest.fixture
def fitted(run):
    X, truth = clouds(300, 0.8)
    sets = make_partial_labels(LABELS[truth], p=0.6, r=1, random_state=0)
    city = np.array(["Rome", "Oslo", "Bonn"])[(truth + (X[:, 0] > 1)) % 3]
    frame_of(X, city=city, names=sets.to_strings()).to_csv("train.csv", index=False)
    words = ["train.csv", "--candidates", "names", "--out", "m.skops"]
    status, out, _ = run("fit", *words)
    assert status == DONE
    assert "Believed to be right for new rows: " in out
    X, truth = clouds(200, 0.8, seed=1)
    city = np.array(["Rome", "Oslo", "Bonn"])[(truth + (X[:, 0] > 1)) % 3]
    return frame_of(X, city=city), LABELS[truth]


def predict(run, frame, *words, **options):
    frame.to_csv("new.csv", index=False, **options)
    status, _, err = run("predict", "m.skops", "new.csv", "--out", "labelled.csv", *words)
    if status != DONE:
        return status, err, None
    found = pd.read_csv("labelled.csv", sep=options.get("sep", ","))
    return status, err, found["label"].to_numpy()


def test_decimal_commas_are_read_and_said(run, fitted):
    frame, truth = fitted
    status, err, labels = predict(run, frame)
    assert (status, err) == (DONE, "")
    expected = (labels == truth).mean()
    assert expected > 0.9
    status, err, labels = predict(run, frame, sep=";", decimal=",")
    assert status == DONE
    assert "'x0' is written as 1.234,5; read accordingly" in err
    assert (labels == truth).mean() == expected


def test_a_table_that_has_lost_most_of_its_information_is_refused(run, fitted):
    frame, truth = fitted
    spoilt = frame.assign(**dict.fromkeys(("x0", "x1", "x2"), "n.v."))
    status, err, _ = predict(run, spoilt)
    assert status == WRONG_INPUT
    assert "'x0', 'x1', 'x2' can't be used, which is most of it" in err
    assert "(--force)" in err
    assert err.count("\n") == 1
    status, err, labels = predict(run, spoilt, "--force")
    assert status == DONE
    assert "'x0' is not as it was learned: 100% of its cells are not a number" in err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.assign(x1=f["x1"] * 100), "far beyond"),
        (
            lambda f: f.assign(x1=f["x1"].where(np.arange(200) % 3 > 0)),
            "34% of its cells are empty",
        ),
        (lambda f: f.assign(city="Paris"), "100% of its cells are of categories that were not"),
    ],
)
def test_what_has_changed_is_said(run, fitted, change, said):
    status, err, _ = predict(run, change(fitted[0]))
    assert status == DONE
    assert said in err


def test_all_missing_columns_are_named(run, fitted):
    status, err, _ = predict(run, fitted[0].drop(columns=["x0", "x3"]))
    assert status == WRONG_INPUT
    assert "the table has no columns 'x0', 'x3'" in err


def test_one_row_is_no_reason_to_refuse(run, fitted):
    status, _, labels = predict(run, fitted[0].head(1).assign(x0="", x1="", x2=""))
    assert status == DONE
    assert len(labels) == 1


# -- confidences


def test_confidences_and_the_estimate_for_new_rows_hold():
    X, truth = clouds(900, 2.5)
    sets = make_partial_labels(truth, p=0.8, r=1, random_state=0)
    frame = frame_of(X)
    learned = learn_from_table(FrameTable(frame[:500]), sets[:500])
    resolution = learned.resolution
    assert resolution.confidence.mean() == pytest.approx(
        (resolution.labels == truth[:500]).mean(), abs=0.04
    )
    new = learned.model.predicted_columns(FrameTable(frame[500:]))
    right = (np.array(new["label"].to_pylist()) == truth[500:]).mean()
    assert np.mean(new["confidence"].to_pylist()) == pytest.approx(right, abs=0.06)
    estimate = learned.new_rows()
    assert 0 < estimate.error < 0.03
    assert estimate.accuracy == pytest.approx(right, abs=3 * estimate.error + 0.02)
    assert right < (resolution.labels == truth[:500]).mean() - 0.05  # not the same question


@pytest.mark.parametrize("method", ["sppll", "plknn"])
def test_other_methods_are_calibrated_too(method):
    X, truth = clouds(400, 1.6)
    sets = make_partial_labels(truth, p=0.8, r=1, random_state=0)
    learned = learn_from_table(FrameTable(frame_of(X)), sets, method=method)
    right = (learned.resolution.labels == truth).mean()
    assert learned.resolution.confidence.mean() == pytest.approx(right, abs=0.08)


# -- European and Windows files, and what is no feature


def test_a_european_spreadsheet_export(run):
    X, truth = clouds(150, 0.8)
    sets = make_partial_labels(LABELS[truth], p=0.6, r=1, random_state=0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(100 * truth + np.arange(150) % 40, unit="D")
    frame = frame_of(1000 * X, datum=days.strftime("%d.%m.%Y"), names=sets.to_strings())
    frame["preis €"] = [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in X[:, 0]]
    frame["names"] = frame["names"].str.replace("ash", "Esche – groß")
    frame.to_csv("t.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    words = ["disambiguate", "t.csv", "--candidates", "names", "--out", "out.csv", "--json"]
    result = json.loads(run(*words)[1])
    assert result["features"] == {
        **dict.fromkeys(["x0", "x1", "x2", "x3"], "number"),
        "datum": "date",
        "preis €": "number",
    }
    assert any("Windows-1252" in note for note in result["notes"])
    found = pd.read_csv("out.csv", sep=";")  # as the table was
    assert set(found["label"]) == {"Esche – groß", "beech", "oak"}
    truth = np.where(LABELS[truth] == "ash", "Esche – groß", LABELS[truth])
    assert (found["label"] == truth).mean() > 0.9


def test_labels_and_decisions_with_decimal_commas_can_be_audited(run):
    random = np.random.default_rng(0)
    confidence = random.uniform(0.5, 1, 60).round(3)
    labels = pd.DataFrame({"label": random.choice(["cat", "dog"], 60), "confidence": confidence})
    told = []
    for mark, style in (("point", {}), ("comma", {"sep": ";", "decimal": ","})):
        labels.to_csv(f"{mark}.csv", index=False, **style)
        assert run("audit", f"{mark}.csv", "--rows", "20", "--out", f"{mark}-check.csv")[0] == DONE
        check = pd.read_csv(f"{mark}-check.csv", sep=style.get("sep", ","))
        check["label"] = np.where(np.arange(20) % 5, check["guess"], "cat")
        check.to_csv(f"{mark}-check.csv", index=False, **style)
        words = ["--decisions", f"{mark}-check.csv", "--json"]
        status, out, _ = run("audit", f"{mark}.csv", *words)
        assert status == DONE
        told.append(json.loads(out))
    assert told[0] == told[1]


def test_an_index_and_numbers_that_name_rows_are_no_features(run):
    X, truth = clouds(120, 0.8)
    random = np.random.default_rng(0)
    ids = random.permutation(np.arange(100_000, 999_999))[:120]
    frame = frame_of(
        X,
        customer_id=random.permutation(5000)[:120],
        account=ids,
        rising=np.cumsum(random.integers(1, 9, 120)),
        count=random.integers(0, 50, 120),
        names=make_partial_labels(LABELS[truth], p=0.6, r=1, random_state=0).to_strings(),
    )
    frame = frame.sample(frac=1, random_state=0).sort_values("rising")
    table = pa.Table.from_pandas(frame)
    assert "__index_level_0__" in table.column_names
    pq.write_table(table, "t.parquet")
    words = ["disambiguate", "t.parquet", "--candidates", "names", "--out", "out.csv"]
    status, out, err = run(*words, "--json")
    assert status == DONE
    assert set(json.loads(out)["features"]) == {"x0", "x1", "x2", "x3", "count"}
    for name in ("customer_id", "account", "rising", "__index_level_0__"):
        assert f"'{name}'" in err
    chosen = json.loads(run(*words, "--features", "x0,account", "--json")[1])
    assert set(chosen["features"]) == {"x0", "account"}


# -- asking, explaining


def test_answers_to_the_questions_help_more_than_answers_at_random():
    gains = {"asked": [], "random": []}
    for seed in range(3):
        X, truth = clouds(300, 1.8, seed=seed)
        sets = make_partial_labels(LABELS[truth], p=1, r=1, random_state=seed)
        frame = frame_of(X)
        result = disambiguate(frame, sets, details=True)
        before = (result.frame["label"] == LABELS[truth]).mean()
        asked = rows_to_ask(result.learned, 30)
        assert len(set(asked.tolist())) == 30
        random = np.random.default_rng(seed).choice(300, 30, replace=False)
        for kind, rows in (("asked", asked), ("random", random)):
            known = pd.DataFrame({"row": rows + 1, "label": LABELS[truth[rows]]})
            after = disambiguate(frame, sets, decisions=known)
            gains[kind].append((after["label"] == LABELS[truth]).mean() - before)
            assert (after["label"].to_numpy()[rows] == LABELS[truth[rows]]).all()
    assert np.mean(gains["asked"]) > np.mean(gains["random"]) + 0.01


def test_questions_go_out_and_come_back(run):
    X, truth = clouds(120, 1.5)
    sets = make_partial_labels(LABELS[truth], p=0.9, r=1, random_state=0)
    keys = [f"k{row}" for row in range(120)]
    frame_of(X, key=keys, names=sets.to_strings()).to_csv("t.csv", index=False)
    words = ["disambiguate", "t.csv", "--candidates", "names", "--id", "key", "--out", "out.xlsx"]
    status, out, _ = run(*words, "--ask", "12")
    assert status == DONE
    assert "out-questions.xlsx" in out
    asked = pd.read_excel("out-questions.xlsx")
    assert len(asked) == 12
    assert list(asked.columns) == [
        *("row", "id", "label", "candidates", "guess", "confidence", "suspect"),
        *("x0", "x1", "x2", "x3"),
    ]
    assert (asked["id"] == [keys[row - 1] for row in asked["row"]]).all()
    asked["label"] = asked["label"].astype(object)
    asked.loc[:5, "label"] = LABELS[truth[asked["row"][:6] - 1]]
    asked.to_excel("out-questions.xlsx", index=False)
    status, out, err = run(*words, "--decisions", "out-questions.xlsx")
    assert status == DONE, err
    assert "6 decided by you" in out
    found = pd.read_excel("out.xlsx").set_index("key")
    rows = asked["id"][:6]
    assert (found.loc[rows, "label"].to_numpy() == asked["label"][:6]).all()
    assert found.loc[rows, "decided"].all()
    assert not found.loc[rows, "unanimous"].any()


def test_explanations_name_similar_rows_and_the_columns_that_count(run):
    random = np.random.default_rng(0)
    truth = random.integers(2, size=120)
    frame = pd.DataFrame(
        {
            "key": [f"k{row}" for row in range(120)],
            "noise": random.normal(size=120),
            "size": 3 * truth + random.normal(scale=0.5, size=120),
            "names": np.where(np.arange(120) % 3 > 0, "a|b", np.array(["a", "b"])[truth]),
        }
    )
    frame.to_csv("t.csv", index=False)
    words = ["t.csv", "--candidates", "names", "--id", "key", "--out", "out.csv", "--explain"]
    status, _, err = run("disambiguate", *words)
    assert status == DONE, err
    found = pd.read_csv("out.csv", keep_default_na=False)
    first = [text.split(", ")[0] for text in found["columns_that_matter"] if text]
    assert len(first) > 100
    assert np.mean([name == "size" for name in first]) > 0.9
    label = found.set_index("key")["label"]
    for row in found.itertuples():
        near = row.like_label.split(", ")
        assert row.key not in near
        assert {label[key] for key in near} == {row.label}
        if row.runner_up:
            assert {label[key] for key in row.like_runner_up.split(", ")} == {row.runner_up}


def test_rows_that_miss_the_truth_are_suspects():
    X, truth = clouds(300, 0.7)
    sets = make_partial_labels(truth, p=0.5, r=1, random_state=0).to_lists()
    wrong = np.arange(0, 300, 20)
    for row in wrong:
        sets[row] = [(truth[row] + 1) % 3]
    learned = learn_from_table(FrameTable(frame_of(X)), as_candidates(sets))
    missing = learned.missing()
    assert (missing[wrong] > 0.5).mean() > 0.8
    assert (np.delete(missing, wrong) > 0.5).mean() < 0.02
