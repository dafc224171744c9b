"""Files and frames, and what is said of those that can't be read."""

import csv
import io
import json
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpll.tables.formats import (
    ParquetTable,
    TableFormat,
    check_writable,
    known_suffix,
    read_table,
    write_table,
    written_whole,
)
from skpll.tables.reading import FrameTable, Table, text_of

CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@pytest.fixture
def file(tmp_path):
    def make(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_common_kinds_of_text_files(file, encoding, end, delimiter):
    rows = [["name", "größe"], ['Ann "A", x; y\tz', "1"], ["Bob\nB.", ""]]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator=end).writerows(rows)
    table = read_table(file((text.getvalue() + end).encode(encoding)))
    assert table.names == rows[0]
    assert table.column("name").to_pylist() == ['Ann "A", x; y\tz', "Bob\nB."]
    assert table.column("größe").to_pylist() == ["1", ""]


def test_what_is_not_utf_8_is_from_windows(file):
    with pytest.warns(UserWarning, match="read as Windows-1252"):
        table = read_table(file("a,b\nFüchsin – 5 €,1\n".encode("cp1252")))
    assert table.column("a").to_pylist() == ["Füchsin – 5 €"]
    with pytest.warns(UserWarning, match="read as Windows-1252"):
        assert read_table(file(b"a,b\n\x81,1\n")).column("a").to_pylist() == ["\x81"]


def test_a_delimiter_in_quotes_does_not_count(file):
    assert read_table(file('"a,b,c";d\n1;2\n')).names == ["a,b,c", "d"]
    assert read_table(file("a|b\n1|2\n"), delimiter="|").names == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,b\n1,2\n3\n", "line 3 has 1 cell, but the header has 2"),
        ("a,b\n1,2,3\n", "line 2 has 3 cells, but the header has 2"),
        ("a,b,a\n1,2,3\n", "columns 1 and 3 are both called 'a'"),
        ('a,b\n1,"2\n', "unexpected end of data"),
        ('a,b\n1,"2"x\n', "line 2"),
        (b"\x89PNG\r\n\0\0\n", "not a text file"),
        ("a,b\n1,2\n".encode("utf-16")[:-3], "not readable as utf-16"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*read as")
def test_a_bad_text_file_is_refused_with_its_line(file, content, message):
    with pytest.raises(ValueError, match=message):
        read_table(file(content))


def test_a_bad_parquet_file_is_refused(file, tmp_path):
    with pytest.raises(ValueError, match="not a readable Parquet file"):
        read_table(file(b"PAR1 and no more", "t.parquet"))
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"a": list(range(10**5))}), path)
    content = path.read_bytes()
    path.write_bytes(content[:1000] + bytes(1000) + content[2000:])
    with pytest.raises(ValueError, match="damaged Parquet file"):
        read_table(path).column("a")


def test_long_cells_are_fine_and_the_limit_is_put_back(file):
    before = csv.field_size_limit()
    assert read_table(file("a,b\n" + "x" * 10**6 + ",1\n")).column("a")[0].as_py() == "x" * 10**6
    assert csv.field_size_limit() == before


@settings(max_examples=60)
@given(data=st.data())
def test_text_tables_survive_reading_and_writing(tmp_path_factory, data):
    names = data.draw(st.lists(CELL.map(str.strip).filter(bool), min_size=1, unique=True))
    row = st.lists(CELL, min_size=len(names), max_size=len(names)).filter(any)
    rows = data.draw(st.lists(row, min_size=1, max_size=5))
    folder = tmp_path_factory.mktemp("tables")
    with (folder / "in.csv").open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines, quoting=csv.QUOTE_ALL).writerows([names, *rows])
    first = read_table(folder / "in.csv", delimiter=",")
    write_table(folder / "out.csv", first, {"new": pa.array([1] * len(rows))})
    second = read_table(folder / "out.csv", delimiter=",")
    assert second.names == [*names, "new"]
    for place, name in enumerate(names):
        assert second.column(name).to_pylist() == [row[place] for row in rows]


def test_parquet_in_batches_is_the_whole(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"x": list(range(40_000)), "s": [["a"], ["b", "c"]] * 20_000})
    pq.write_table(table, path, row_group_size=7_000)
    read = ParquetTable(path)
    assert read.n_rows == 40_000
    assert read.column("s").to_pylist() == table["s"].to_pylist()
    assert [x for batch in read.batches(["x"]) for x in batch["x"].to_pylist()] == list(
        range(40_000)
    )
    write_table(tmp_path / "u.parquet", read, {"y": table["x"]})
    assert pq.read_table(tmp_path / "u.parquet").equals(table.append_column("y", table["x"]))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames(make):
    table = FrameTable(make({"x": [1.5, None, 3.0], "s": ["a", None, "c"]}))
    assert (table.names, table.n_rows) == (["x", "s"], 3)
    assert table.column("x").to_pylist() == [1.5, None, 3.0]
    assert [batch["s"].to_pylist() for batch in table.batches(["s"])] == [["a", None, "c"]]


def test_mixed_cells_of_a_frame_become_text():
    frame = pd.DataFrame({"x": pd.Series([1, "a", None, 2.5], dtype=object)})
    assert FrameTable(frame).column("x").to_pylist() == ["1", "a", None, "2.5"]
    assert text_of(pa.array([True, None])).to_pylist() == ["true", None]
    assert text_of(pa.array([{"k": 1}])).to_pylist() == ["{'k': 1}"]


def test_nothing_is_left_of_a_file_that_was_not_finished(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")

    def interrupted():
        with written_whole(path) as beside:
            beside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with written_whole(path) as beside:
        beside.write_text("new")
    assert path.read_text() == "new"
    (tmp_path / "x").touch()
    assert path.stat().st_mode == (tmp_path / "x").stat().st_mode
    with pytest.raises(ValueError, match="there is no folder"), written_whole(path / "no" / "t"):
        pass
    with pytest.raises(ValueError, match="is a folder"), written_whole(tmp_path):
        pass


def test_formulas_are_escaped_on_demand(file, tmp_path):
    table = read_table(file('a,b\n=1+1,-5\n"@x, y",-5a\nplain,+1e5\n'))
    write_table(tmp_path / "as_is.csv", table, {})
    assert (tmp_path / "as_is.csv").read_text() == 'a,b\n=1+1,-5\n"@x, y",-5a\nplain,+1e5\n'
    write_table(tmp_path / "safe.csv", table, {}, escape_formulas=True)
    assert (tmp_path / "safe.csv").read_text() == "a,b\n'=1+1,-5\n\"'@x, y\",'-5a\nplain,+1e5\n"


def test_lists_become_text_that_can_be_read_back(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": [["a", "b"], ["c|d"]], "t": [True, None]}), path)
    write_table(tmp_path / "t.tsv", ParquetTable(path), {})
    assert (tmp_path / "t.tsv").read_text() == 's\tt\na|b\ttrue\n"[""c|d""]"\t\n'


def test_a_format_is_one_class(tmp_path):
    class OtherLines(TableFormat):
        """One object a line."""

        suffixes = (".lines",)

        def read(self, path):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            return Table(list(rows[0]), [pa.array([row[k] for row in rows]) for k in rows[0]])

        def write(self, path, table):
            rows = [row for part in table.batches(table.names) for row in part.to_pylist()]
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    first = Table(["a", "b"], [pa.array(["1", "2"]), pa.array(["x", "y"])])
    write_table(tmp_path / "t.LINES", first, {"c": pa.array([0.5, 1])})
    second = read_table(tmp_path / "t.LINES")
    assert second.names == ["a", "b", "c"]
    assert second.column("c").to_pylist() == [0.5, 1]


COLUMNS = {
    "n": [1.5, -2.0, None],
    "s": ["=1+1", "Füchsin\n", None],
    "list": [["a", "b"], ["c"], ["a"]],
    "b": [True, False, None],
}


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet", ".csv.gz", ".tsv", ".xlsx"])
def test_every_suffix_is_written_as_what_it_says_and_read_back(tmp_path, suffix):
    first = Table(list(COLUMNS), [pa.array(column) for column in COLUMNS.values()])
    path = tmp_path / f"t{suffix}"
    assert known_suffix(path) == suffix
    write_table(path, first, {"new": pa.array([1, 2, 3])})
    second = read_table(path)
    assert second.names == [*COLUMNS, "new"]
    found = {name: second.column(name).to_pylist() for name in second.names}
    if suffix.startswith((".jsonl", ".parquet")):
        assert found == {**COLUMNS, "new": [1, 2, 3]}
    else:
        assert [float(cell) if cell else None for cell in found["n"]] == COLUMNS["n"]
        assert [cell or None for cell in found["s"]] == COLUMNS["s"]
        assert found["list"] == ["a|b", "c", "a"]


def test_text_in_a_spreadsheet_is_never_a_formula(tmp_path):
    import openpyxl

    first = Table(["a"], [pa.array(["=1+1", "bad \x01 sign"])])
    write_table(tmp_path / "t.xlsx", first, {})
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").worksheets[0]
    assert [cell.data_type for cell in sheet["A"]] == ["s", "s", "s"]
    assert [cell.value for cell in sheet["A"]] == ["a", "=1+1", "bad  sign"]


def test_spreadsheets_keep_numbers_and_dates(tmp_path):
    frame = pd.DataFrame({"x": [1, 2.5], "day": pd.to_datetime(["2024-12-31", "2025-01-01"])})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    table = read_table(tmp_path / "t.xlsx")
    assert table.column("x").to_pylist() == [1, 2.5]
    assert pa.types.is_timestamp(table.column("day").type)


@pytest.mark.parametrize("suffix", [".csv.gz", ".jsonl", ".xlsx", ".jsonl.gz"])
@pytest.mark.parametrize("content", [b"", b"\x00\x01nonsense", b'{"a": 1}\n[2]\n', b'{"a": \n'])
def test_what_is_no_such_file_is_refused(file, suffix, content):
    with pytest.raises((ValueError, OSError)):
        read_table(file(content, f"t{suffix}"))


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    folder = tmp_path / "parts"
    for place, part in enumerate(("kind=u", "kind=v")):
        (folder / part).mkdir(parents=True)
        rows = range(3 * place, 3 * place + 3)
        pq.write_table(pa.table({"x": list(rows)}), folder / part / "0.parquet")
    table = read_table(folder)
    assert (table.names, table.n_rows) == (["x", "kind"], 6)
    assert table.column("x").to_pylist() == list(range(6))
    batches = list(table.batches(["x", "kind"]))
    assert [x for batch in batches for x in text_of(batch["kind"]).to_pylist()] == [*"uuuvvv"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no Parquet files"):
        read_table(tmp_path / "empty")


@pytest.mark.parametrize("name", ["t.xls", "t.xml", "t", "t.gz", "t.html"])
def test_a_suffix_of_no_format_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"no format of tables has the suffix .*\.csv, .*\.xlsx"):
        known_suffix(tmp_path / name)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="a folder that nobody can write to")
def test_a_place_that_can_not_be_written_to_is_found_early():
    with pytest.raises(ValueError, match="nothing can be written to that folder"):
        check_writable(Path("/proc/out.csv"))
