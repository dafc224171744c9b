"""Columns of text, vectors and pictures: what they are taken for, and what is learned from them."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from skpll import disambiguate
from skpll.cli import DONE, WRONG_INPUT
from skpll.datasets import make_partial_labels
from skpll.tables import blocks
from skpll.tables.columns import FeatureColumns
from skpll.tables.learning import learn_from_table
from skpll.tables.models import load_model, save_model
from skpll.tables.reading import FrameTable, Table, embedded

N = 120
RANDOM = np.random.default_rng(0)
FILLERS = [
    "please",
    "could",
    "you",
    "tell",
    "me",
    "now",
    "what",
    "was",
    "about",
    "again",
    "and",
    "it",
]
TOPICS = {
    "money": ["bank", "loan", "credit", "interest", "payment"],
    "sport": ["goal", "match", "league", "player", "score"],
    "food": ["bread", "soup", "butter", "dinner", "recipe"],
}
TRUTH = RANDOM.choice(list(TOPICS), N)


def sentence(topic):
    words = [*RANDOM.choice(FILLERS, 5), *RANDOM.choice(TOPICS[topic], 2)]
    return " ".join(RANDOM.permutation(words))


TEXTS = [sentence(topic) for topic in TRUTH]
SETS = make_partial_labels(TRUTH, p=0.8, r=1, random_state=0)
VECTORS = np.eye(3)[np.unique(TRUTH, return_inverse=True)[1]] + RANDOM.normal(
    scale=0.2, size=(N, 3)
)


def frame(**columns):
    return pd.DataFrame({**columns, "names": SETS.to_strings()})


def learn(**columns):
    return FeatureColumns.learn(FrameTable(pd.DataFrame(columns)))


# -- what a column is taken for ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (TEXTS, True),
        (["What is the capital of Peru?", "Who wrote this old book?"], True),
        (["今天天气很好我们去公园玩儿吧然后吃饭"], True),
        ([f"name {i}" for i in range(50)], False),
        (["Anna Smith", "Bob Miller"], False),
        (["https://example.org/a/b/c/d?e=f&g=h"], False),
        ([], False),
    ],
)
def test_free_text_has_several_words(texts, expected):
    assert blocks.is_prose(texts) is expected


def test_names_of_pictures():
    some = ["a/b.png", "C:\\photos\\my dog.JPG", "x.jpeg"]
    addresses = ["https://example.org/a.webp?size=3"], ["data:image/png;base64,AAAA"]
    assert all(map(blocks.are_pictures, (some, *addresses, ["a.png"] * 19 + ["a.txt"])))
    assert not any(map(blocks.are_pictures, (["a.png", "a.txt"], [".png"], [])))


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 10, []),
        (0, 14, ["day of week"]),
        (0.5, 14.75, ["time of day", "day of week"]),
        (0, 800, ["day of week", "time of year"]),
    ],
)
def test_periods_that_dates_cover(first, last, expected):
    assert list(blocks.periods(first, last)) == expected


def test_text_is_found_and_said_and_becomes_numbers():
    with pytest.warns(UserWarning, match="read as text, by words and letters: 'question'"):
        columns = learn(question=TEXTS)
    column = columns.columns["question"]
    assert (column.kind, column.n_values) == ("text", len(set(TEXTS)))
    X = columns.transform(FrameTable(pd.DataFrame({"question": TEXTS})))
    assert X.shape == (N, column.width)
    assert column.becomes() == f"words and letters ({column.width} numbers)"
    assert np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1)) == pytest.approx(1, rel=1e-3)


def test_a_gap_in_text_is_at_the_mean():
    table = FrameTable(pd.DataFrame({"question": [*TEXTS, None]}))
    columns = FeatureColumns.learn(table, text=["question"])
    X = columns.transform(table)
    assert not X[-1].any()
    assert X[:-1].any(axis=1).all()


def test_every_part_counts_as_much_as_the_plain_columns():
    names = {f"x{j}": RANDOM.normal(size=N) for j in range(4)}
    table = FrameTable(pd.DataFrame({**names, "question": TEXTS}))
    X = FeatureColumns.learn(table, text=["question"]).transform(table)
    sizes = ((X - X.mean(axis=0)) ** 2).mean(axis=0)
    assert sizes[:4].sum() == pytest.approx(4)
    assert sizes[4:].sum() == pytest.approx(4, rel=1e-3)


def test_dates_are_also_points_on_circles():
    days = pd.to_datetime("2020-03-01") + pd.to_timedelta(RANDOM.integers(0, 1500, N), unit="D")
    table = FrameTable(pd.DataFrame({"day": days.to_series().reset_index(drop=True)}))
    columns = FeatureColumns.learn(table)
    assert columns.columns["day"].becomes() == "days, day of week, time of year"
    assert columns.transform(table).shape == (N, 5)
    assert not columns.encoder.transform(columns.gaps())[0, 1:].any()


def test_dates_that_rise_with_the_rows_are_features():
    columns = learn(day=pd.date_range("2021-01-01", periods=N).strftime("%d.%m.%Y"))
    assert columns.columns["day"].becomes() == "days, day of week (written as 31.12.2024)"


def test_long_texts_are_known_by_words_alone(monkeypatch):
    monkeypatch.setattr(blocks, "MAX_LETTERS", 100)
    found = blocks.TextEncoder().fit(TEXTS)
    assert len(found.terms_) == 1
    assert found.transform(TEXTS[:3]).shape == (3, len(found.components_))


def test_words_are_learned_from_some_rows(monkeypatch):
    monkeypatch.setattr(blocks, "MAX_ROWS", 20)
    assert len(blocks.TextEncoder().fit(TEXTS).components_) <= 20


def test_texts_without_a_word_twice():
    texts = [f"{chr(0x4E00 + 2 * i)}{chr(0x4E01 + 2 * i)}" for i in range(250)]
    assert blocks.TextEncoder().fit(texts).transform(texts).shape[0] == 250


def test_the_truncated_directions_keep_most_of_the_distances(monkeypatch):
    exact = blocks.TextEncoder().fit(TEXTS).transform(TEXTS)
    monkeypatch.setattr(blocks, "N_DIRECTIONS", 60)
    reduced = blocks.TextEncoder().fit(TEXTS).transform(TEXTS)
    apart = [np.linalg.norm(X[:, None] - X[None], axis=2).ravel() for X in (exact, reduced)]
    assert reduced.shape == (N, 60)
    assert np.corrcoef(apart)[0, 1] > 0.9


# -- learning from it -------------------------------------------------------------------------


def test_labels_follow_from_text():
    found = disambiguate(frame(question=TEXTS), candidates="names", text=["question"])
    assert (found["label"] == TRUTH).mean() > 0.95


def test_text_beside_numbers_and_categories_in_a_saved_model(tmp_path):
    table = FrameTable(
        pd.DataFrame(
            {"question": TEXTS, "x": RANDOM.normal(size=N), "town": RANDOM.choice(["A", "B"], N)}
        )
    )
    model = learn_from_table(table, SETS, text=["question"]).model
    save_model(model, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops")
    new = FrameTable(
        pd.DataFrame(
            {"question": ["a loan of the bank", "?!", "soup and bread"], "x": 0.0, "town": "A"}
        )
    )
    labels = loaded.predicted_columns(new)["label"].to_pylist()
    assert labels == model.predicted_columns(new)["label"].to_pylist()
    assert (labels[0], labels[2]) == ("money", "food")


def test_the_words_that_matter_are_named():
    found = disambiguate(frame(question=TEXTS), candidates="names", text=["question"], explain=True)
    own = [
        set(words.split(", ")) & set(TOPICS[t])
        for words, t in zip(found["words_that_matter"].fillna(""), TRUTH, strict=True)
    ]
    assert np.mean([bool(words) for words in own]) > 0.9
    assert (found["columns_that_matter"] == "question").mean() > 0.9


def test_shuffled_cells_are_those_of_a_shuffled_frame():
    table = FrameTable(
        pd.DataFrame({"question": TEXTS, "x": RANDOM.normal(size=N), "town": ["A", "B", "C"] * 40})
    )
    columns = FeatureColumns.learn(table, text=["question"])
    frame = next(columns.frames(table))
    X, order = columns.encoder.transform(frame), RANDOM.permutation(N)
    for name in columns.columns:
        expected = columns.encoder.transform(frame.assign(**{name: frame[name].to_numpy()[order]}))
        assert np.allclose(columns.shuffled(frame, X, name, order), expected)


# -- vectors ----------------------------------------------------------------------------------


def test_vectors_alone_and_beside_columns():
    plain = frame(x=RANDOM.normal(size=N))
    for options in ({"features": ["embeddings"]}, {}):
        found = disambiguate(plain, "names", embeddings=VECTORS, **options)
        assert (found["label"] == TRUTH).mean() > 0.95
        assert "embeddings" not in found.columns


def test_a_table_with_vectors_is_the_table_in_all_else():
    table = FrameTable(frame())
    table.delimiter, table.tasks = ";", object()
    found = embedded(table, VECTORS)
    assert (found.names, found.delimiter, found.tasks) == (table.names, ";", table.tasks)
    batches = list(found.batches(["names", "embeddings"]))
    assert [batch.column_names for batch in batches] == [["names", "embeddings"]]
    assert len(batches[0]["embeddings"]) == N


def test_vectors_in_a_file(tmp_path):
    np.save(tmp_path / "v.npy", VECTORS)
    found = disambiguate(frame(), "names", embeddings=tmp_path / "v.npy")
    assert (found["label"] == TRUTH).mean() > 0.95


def test_a_column_of_vectors_with_gaps():
    cells = [None if row == 3 else vector.tolist() for row, vector in enumerate(VECTORS)]
    table = Table(["v"], [pa.array(cells)])
    columns = FeatureColumns.learn(table)
    assert columns.columns["v"].summary() == "vectors of 3 numbers"
    X = columns.transform(table)
    assert X.shape == (N, 3)
    assert not X[3].any()


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (VECTORS[:5], "there are 5 rows for the 120 of the table"),
        (VECTORS[:, 0], r"expected a matrix of numbers, got float64 of shape \(120,\)"),
        (np.full((N, 2), "a"), "expected a matrix of numbers"),
        (np.where(np.arange(N)[:, None] == 6, np.nan, VECTORS), "row 7 has an entry that is not"),
    ],
)
def test_vectors_that_do_not_fit(vectors, message):
    with pytest.raises(ValueError, match=f"embeddings: {message}"):
        embedded(FrameTable(frame()), vectors)


def test_a_file_that_is_no_array(tmp_path):
    (tmp_path / "v.npy").write_text("no")
    with pytest.raises(ValueError, match=r"v\.npy: not a readable \.npy file"):
        disambiguate(frame(), "names", embeddings=tmp_path / "v.npy")


def test_a_model_of_vectors_asks_for_them(tmp_path):
    table = embedded(FrameTable(frame()[["names"]]), VECTORS)
    learned = learn_from_table(table, SETS, exclude=["names"])
    with pytest.raises(ValueError, match=r"needs a vector for each row \(embeddings='FILE.npy'\)"):
        learned.model.predicted_columns(FrameTable(frame()))
    assert len(learned.model.predicted_columns(table)["label"]) == N
    for n in (1, 2):
        short = embedded(FrameTable(frame()[["names"]]), VECTORS[:, :n])
        message = f"a vector has {n} numbers, those that were learned from have"
        with pytest.raises(ValueError, match=message):
            learned.model.predicted_columns(short)


# -- pictures ---------------------------------------------------------------------------------


def test_a_table_of_pictures_needs_vectors():
    pictures = frame(photo=[f"photos/{i}.jpg" for i in range(N)])
    with pytest.warns(UserWarning, match="'photo': names of pictures"):
        found = disambiguate(pictures, "names", embeddings=VECTORS)
    assert (found["label"] == TRUTH).mean() > 0.95
    with (
        pytest.warns(UserWarning, match="'photo': names of pictures"),
        pytest.raises(ValueError, match=r"pictures are all .* \(embeddings='FILE.npy'\)"),
    ):
        disambiguate(pictures, "names")


# -- the command line -------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "questions.csv"
    frame(question=TEXTS, photo=[f"{i}.png" for i in range(N)]).to_csv(path, index=False)
    np.save(tmp_path / "v.npy", VECTORS)
    return path


def test_inspect_says_what_columns_become(run, table):
    status, out, _ = run("inspect", table, "--candidates", "names", "--json")
    found = {column["name"]: column for column in json.loads(out)["columns"]}
    assert status == DONE
    assert found["question"]["kind"] == "text"
    assert found["question"]["becomes"].startswith("words and letters")
    assert (found["photo"]["kind"], found["photo"]["used"]) == ("picture", False)
    assert found["photo"]["values"].endswith("(120 different)")


def test_text_and_vectors_from_the_shell(run, table):
    words = ["--candidates", "names", "--ignore", "photo", "--quiet"]
    assert run("fit", table, *words, "--embeddings", "v.npy", "--out", "m.skops")[0] == DONE
    status, _, err = run("predict", "m.skops", table, "--out", "p.csv")
    assert status == WRONG_INPUT
    assert "(--embeddings FILE.npy)" in err
    words = ["predict", "m.skops", table, "--embeddings", "v.npy", "--out", "p.csv"]
    assert run(*words)[0] == DONE
    labels = pd.read_csv("p.csv")
    assert (labels["label"] == TRUTH).mean() > 0.95
    assert "embeddings" not in labels.columns


def test_pictures_alone_are_refused_from_the_shell(run, table):
    words = ["--candidates", "names", "--exclude", "question", "--out", "r.csv"]
    status, _, err = run("disambiguate", table, *words)
    assert status == WRONG_INPUT
    assert "pictures are all that the table has to learn from" in err
    assert err.endswith("name the file (--embeddings FILE.npy).\n")


# -- histograms -------------------------------------------------------------------------------


def histograms(n):
    """Draw counts with long tails, of which small ones say as much as large ones."""
    random = np.random.default_rng(0)
    truth = random.integers(3, size=n)
    shapes = np.where(np.arange(12) % 3 == np.arange(3)[:, np.newaxis], 0.6, 0.15)
    return random.poisson(100 * random.gamma(shapes[truth])).astype(float), truth


def test_histograms_are_recognized():
    X, _ = histograms(50)
    assert blocks.are_histograms(X)
    assert blocks.are_histograms(X / X.sum(axis=1, keepdims=True))
    assert not blocks.are_histograms(X[:, :5])
    assert not blocks.are_histograms(X - 1)
    assert not blocks.are_histograms(X + RANDOM.random(X.shape))
    assert not blocks.are_histograms(np.where(X == X.max(), np.nan, X))
    assert not blocks.are_histograms((X > 0).astype(float))


def test_square_roots_where_held_out_rows_prefer_them(tmp_path):
    X, truth = histograms(200)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(12)])
    sets = make_partial_labels(truth, p=0.5, r=1, random_state=0)
    with pytest.warns(UserWarning, match="look like histograms: square roots of them"):
        model = learn_from_table(FrameTable(frame), sets).model
    save_model(model, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops").predicted_columns(FrameTable(frame))["label"]
    assert loaded.to_pylist() == model.predicted_columns(FrameTable(frame))["label"].to_pylist()
    roots = FeatureColumns.learn(FrameTable(np.sqrt(frame))).transform(FrameTable(np.sqrt(frame)))
    assert np.allclose(model.columns.transform(FrameTable(frame)), roots)


def test_no_square_roots_where_they_say_nothing():
    X = RANDOM.integers(0, 3, size=(80, 8)).astype(float)
    sets = make_partial_labels(RANDOM.integers(3, size=80), p=0.5, r=1, random_state=0)
    table = FrameTable(pd.DataFrame(X, columns=[f"x{j}" for j in range(8)]))
    assert "roots" not in str(learn_from_table(table, sets).model.columns.encoder)
