"""Files as people have them: titles above the header, two encodings, several spellings."""

import gzip
import json

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skpll.cli import DONE, WRONG_INPUT
from skpll.tables.formats import read_table, write_table
from skpll.tables.labels import LabelSource, proposed_merge, read_merge
from skpll.tables.reading import Table

LABELS = Table(["label"], [pa.array(["oak"] * 30 + ["Oak", "birch", "birch ", "bircch"])])


def text_table(**columns):
    return Table(list(columns), [pa.array(cells) for cells in columns.values()])


def sheet_of(path):
    rows = openpyxl.load_workbook(path).worksheets[0].iter_rows(values_only=True)
    header, *cells = (list(row) for row in rows)
    return dict(zip(header, map(list, zip(*cells, strict=True)), strict=True))


def write_sheet(path, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_numbers_of_a_text_file_are_numbers_in_a_spreadsheet(tmp_path):
    table = text_table(
        whole=["1", "-2", "NA"],
        decimal=["1,5", "2,25", "1.000,5"],
        code=["007", "12", "13"],
        long=["12345678901234567", "1", "2"],
        mixed=["1", "two", "3"],
        formula=["=1+1", "2", "3"],
    )
    write_table(tmp_path / "t.xlsx", table, {})
    assert sheet_of(tmp_path / "t.xlsx") == {
        "whole": [1, -2, None],
        "decimal": [1.5, 2.25, 1000.5],
        "code": ["007", "12", "13"],
        "long": ["12345678901234567", "1", "2"],
        "mixed": ["1", "two", "3"],
        "formula": ["=1+1", "2", "3"],
    }


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_text_file_keeps_its_delimiter(tmp_path, delimiter):
    source = tmp_path / "t.csv"
    source.write_text(delimiter.join("ab") + "\n" + delimiter.join("12") + "\n")
    write_table(tmp_path / "out.csv", read_table(source), {"c": pa.array(["3"])})
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == delimiter.join("abc")
    write_table(tmp_path / "out.tsv", read_table(source), {})
    assert (tmp_path / "out.tsv").read_text().splitlines()[0] == "a\tb"


def test_added_numbers_have_four_digits_except_in_parquet(tmp_path):
    table, added = text_table(a=["0.123456"]), {"confidence": pa.array([0.98765432])}
    write_table(tmp_path / "t.csv", table, added)
    assert (tmp_path / "t.csv").read_text() == "a,confidence\n0.123456,0.9877\n"
    write_table(tmp_path / "t.jsonl", table, added)
    assert json.loads((tmp_path / "t.jsonl").read_text())["confidence"] == 0.9877
    write_table(tmp_path / "t.parquet", table, added)
    assert read_table(tmp_path / "t.parquet").column("confidence").to_pylist() == [0.98765432]


TITLED = [["Trees of 2024"], [None], ["height", "label"], [1, "oak"], [2, None], [3, "elm"]]


def test_a_title_above_the_header_of_a_spreadsheet_is_said_and_skipped(tmp_path):
    path = write_sheet(tmp_path / "t.xlsx", TITLED)
    with pytest.warns(UserWarning, match="row 3 is taken as the header"):
        table = read_table(path)
    assert table.names == ["height", "label"]
    assert table.column("label").to_pylist() == ["oak", None, "elm"]
    assert read_table(path, header=3).names == ["height", "label"]


def test_a_spreadsheet_without_a_title_is_read_from_its_first_row(tmp_path):
    path = write_sheet(tmp_path / "t.xlsx", TITLED[2:])
    assert read_table(path).column("height").to_pylist() == [1, 2, 3]


def test_the_header_of_a_text_file_can_be_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Trees, all of them\n\na;b\n1;2\n")
    table = read_table(path, header=3)
    assert (table.names, table.column("b").to_pylist()) == (["a", "b"], ["2"])
    path.write_text("title,x\n\na,b\n1,2\n3\n")
    for header, line in ((1, 5), (3, 5)):
        with pytest.raises(ValueError, match=rf"line {line} has 1 cell.*, or say which line is"):
            read_table(path, header=header)


def test_two_encodings_in_one_file_are_found(tmp_path):
    path = tmp_path / "t.csv"
    lines = ["name,x", "Zoë,1", "plain,2"]
    path.write_bytes("\n".join(lines).encode() + b"\n" + "Café “née”,3\nŽofie,4\n".encode("cp1252"))
    with pytest.warns(
        UserWarning, match="two encodings in one file: line 4 and 1 more is not UTF-8"
    ):
        table = read_table(path)
    assert table.column("name").to_pylist() == ["Zoë", "plain", "Café “née”", "Žofie"]


def test_one_other_encoding_is_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("name,x\nCafé,1\n\x81,2\n".encode("latin-1"))
    with pytest.warns(UserWarning, match="not UTF-8; read as Windows-1252"):
        assert read_table(path).column("name").to_pylist() == ["Café", "\x81"]


# -- spellings --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:labels that")
def test_a_proposal_names_the_most_frequent_spelling():
    proposal = proposed_merge(LabelSource("label").read(LABELS).candidates)
    assert read_merge(proposal)["Oak"] == "oak"


@pytest.mark.filterwarnings("ignore:labels that")
def test_spellings_are_merged_in_candidates_votes_and_decisions():
    merge = {"Oak": "oak", "bircch": "birch"}
    decisions = text_table(row=["1"], label=["bircch"])
    table = text_table(a=["Oak|elm", "oak|Oak", "bircch"], u=["Oak", "oak", "birch"])
    found = LabelSource("a", merge=merge, decisions=decisions).read(table)
    assert found.candidates.to_lists() == [["birch"], ["oak"], ["birch"]]
    votes = LabelSource(annotators=["u"], merge=merge).read(table)
    assert votes.candidates.classes.tolist() == ["birch", "oak"]


def test_a_label_that_is_a_spelling_is_refused():
    with pytest.raises(ValueError, match="merge: row 1: 'a' means 'b', which means 'c'"):
        read_merge(text_table(spelling=["a", "b", "d"], label=["b", "c", ""]))


def test_inspect_proposes_and_disambiguate_merges(run, tmp_path):
    random = np.random.default_rng(0)
    truth = random.choice(["oak", "elm"], 60)
    names = [f"{t}|ash" if i % 3 else t for i, t in enumerate(truth)]
    names[0], names[1] = "OAK", "Elm|ash"
    frame = pd.DataFrame(
        {"x": (truth == "oak") + random.normal(scale=0.1, size=60), "names": names}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ["t.csv", "--candidates", "names"]
    assert run("inspect", *words, "--propose-merge", "map.csv")[0] == DONE
    assert set(pd.read_csv("map.csv")["spelling"]) == {"OAK", "Elm"}
    status, _, err = run("disambiguate", *words, "--merge", "map.csv", "--out", "out.csv")
    assert (status, err) == (DONE, "")
    assert set(pd.read_csv("out.csv")["label"]) <= {"oak", "elm", "ash"}
    status, _, err = run("inspect", "t.csv", "--propose-merge", "map.csv")
    assert status == WRONG_INPUT
    assert "--propose-merge: name the labels" in err


@pytest.mark.parametrize("width", [60, 80])
def test_inspect_fits_narrow_terminals(run, tmp_path, monkeypatch, width):
    values = [f"value {i % 300}" for i in range(900)]
    texts = [f"a sentence with {i} and some more words" for i in range(900)]
    frame = pd.DataFrame({"text": texts, "many": values, "x": range(900), "names": "a"})
    frame.loc[::2, "names"] = "a|b"
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setenv("COLUMNS", str(width))
    status, out, _ = run("inspect", "t.csv", "--candidates", "names")
    assert status == DONE
    table = out[: out.index("900 rows;")]
    assert max(map(len, table.splitlines())) <= width
    lines = [line.split("│") for line in table.splitlines() if line.startswith("│")]
    becomes = " ".join(" ".join(line[2] for line in lines).split())
    assert "100 of 300 categories, others as one" in becomes


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json"])
def test_a_damaged_packed_file_is_named(run, tmp_path, suffix):
    content = "".join(f'{{"x": {x * x}, "names": "a|b"}}\n' for x in range(300)).encode()
    packed = gzip.compress(content, mtime=0)
    path = tmp_path / f"t{suffix}.gz"
    flipped = packed[:40] + bytes([packed[40] ^ 255]) + packed[41:]
    for damaged in (content, packed[:-20], flipped):
        path.write_bytes(damaged)
        status, _, err = run("inspect", str(path))
        assert status == WRONG_INPUT
        assert f"{path}: not a readable gzip file" in " ".join(err.split("\n"))


def test_a_parquet_table_without_rows_keeps_its_columns(tmp_path):
    path = tmp_path / "none.parquet"
    write_table(path, text_table(a=pa.array([], pa.string())), {"b": pa.array([], pa.int64())})
    assert pq.read_table(path).schema.names == ["a", "b"]
    assert pq.read_table(path).num_rows == 0
