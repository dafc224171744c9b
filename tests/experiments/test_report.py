"""The report as files, and the page in a real browser."""

import ast
import base64
import csv
import hashlib
import json
import re
import sqlite3
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from msgspec.structs import replace

from skpll import experiments
from skpll.cli import main
from skpll.experiments import Specification, Store, tables
from skpll.experiments.report import write_report
from skpll.experiments.tables import load_tables
from skpll.experiments.tasks import RESULT_VERSIONS

from .made_up import fill, shipped

EVIL = "</title><script>alert(1)</script>&\"'"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A comparison, curves and a sensitivity study, with absent data and failures."""
    specifications = [
        replace(shipped("table3"), title=f"Accuracy, {EVIL}"),
        shipped("figure2"),
        shipped("figure6"),
    ]
    return fill(
        tmp_path_factory.mktemp("store") / "results & more.db",
        specifications,
        absent=["msrcv2"],
        broken=lambda task: "time limit" if task.label == "LSB-CMM" else None,
    )


@pytest.fixture(scope="module")
def report(store, tmp_path_factory):
    return write_report(store, tmp_path_factory.mktemp("report") / "new" / "folder")


@pytest.fixture(scope="module")
def stored(store):
    with Store.open(store, read_only=True) as opened:
        return tables.Content.read(opened)


class Outline(HTMLParser):
    """Which tags, ids and links a page has, and whether all tags are closed."""

    VOID = ("meta", "link", "br", "img")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.texts = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a":
            self.links.append(attributes["href"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def outline(report):
    return Outline(report.read_text(encoding="utf-8"))


def test_the_page_is_well_formed_and_needs_nothing(report, outline):
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    text = report.read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\"'\s<>]+", text))
    assert not addresses
    assert [tag for tag, _ in outline.tags if tag in ("iframe", "object")] == []
    pictures = [attributes["src"] for tag, attributes in outline.tags if tag == "img"]
    assert pictures
    assert all(picture.startswith("data:image/svg+xml;base64,") for picture in pictures)
    assert len([tag for tag, _ in outline.tags if tag == "script"]) == 1


def test_all_links_lead_somewhere(report, outline):
    for link in outline.links:
        if link.startswith("#"):
            assert link[1:] in outline.ids
        else:
            assert (report.parent / link).stat().st_size > 0
    kinds = {link.rpartition(".")[2] for link in outline.links if not link.startswith("#")}
    assert kinds == {"csv", "tex", "pdf", "png"}


def test_every_table_and_figure_is_a_file(report):
    figures = {path.name for path in (report.parent / "figures").iterdir()}
    assert {
        "figure2-glass-r1.pdf",
        "figure2-vehicle-r1.png",
        "figure2-ranks.pdf",
        "figure6-lost.png",
        "table3-ranks.png",
    } <= figures
    tables = {path.name for path in (report.parent / "tables").iterdir()}
    written = "table3-accuracy.csv table3-wins.tex figure2-spread.csv figure6-accuracy.tex "
    written += "claims.csv table4.csv failures.csv environment.csv"
    assert set(written.split()) <= tables


def test_text_is_escaped_and_said(report, outline):
    text = report.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    said = "".join(outline.texts)
    assert EVIL in said
    assert "results & more.db" in said
    assert "Absent data: MSRCv2." in said
    assert "skpll data fetch msrcv2" in said
    assert "made up: <b>time limit</b>" in said
    assert "paper 0.749±0.033" in said


def test_the_policy_allows_one_script_and_one_style_sheet(report, outline):
    text = report.read_text(encoding="utf-8")
    (policy,) = (a["content"] for tag, a in outline.tags if tag == "meta" and "http-equiv" in a)
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert [a for _, a in outline.tags if "style" in a or any(n.startswith("on") for n in a)] == []


@pytest.mark.parametrize("name", ["../../x", "/x", "..", "a/b", 'a"b', ".hidden", "x" * 300])
def test_a_report_stays_in_its_folder(tmp_path, name):
    store = fill(tmp_path / "a.db", [replace(shipped("figure6"), name=name)])
    page = write_report(store, tmp_path / "some" / "folder" / "out")
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != store]
    assert all(path.is_relative_to(page.parent) for path in written)
    assert len(written) > 4
    outline = Outline(page.read_text(encoding="utf-8"))
    assert len(outline.ids) == len(set(outline.ids))
    for link in outline.links:
        assert link.startswith("#") or (page.parent / link).is_file()


def test_an_empty_store_gives_a_page(tmp_path):
    page = write_report(fill(tmp_path / "empty.db", []), tmp_path / "out")
    assert "no run yet" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["table3", "figure2", "figure6"])
def test_an_experiment_without_results_says_so(tmp_path, name):
    store = fill(tmp_path / "a.db", [shipped(name)], broken=lambda task: "killed")
    outline = Outline(write_report(store, tmp_path / "out").read_text(encoding="utf-8"))
    assert "There is no result yet." in outline.texts
    assert any(re.fullmatch(r"0 of (\d+) done, \1 failed", text) for text in outline.texts)


def test_wrong_places(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such store"):
        write_report(tmp_path / "none.db", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="is a file; name a folder"):
        write_report(fill(tmp_path / "empty.db", []), tmp_path / "file")


def test_the_command(tmp_path, capsys, monkeypatch):
    store = fill(tmp_path / "results.db", [shipped("figure6")])
    out = tmp_path / "report"
    assert main(["report", str(store), "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["page"] == str(out / "index.html")
    assert str(out / "tables" / "figure6-accuracy.csv") in found["tables"]
    opened = []
    monkeypatch.setattr("typer.launch", opened.append)
    assert main(["report", str(store), "--out", str(out), "--open", "yes"]) == 0
    assert capsys.readouterr().out == f"{out / 'index.html'}\n"
    assert opened == [(out / "index.html").resolve().as_uri()]
    assert main(["report", str(tmp_path / "none.db"), "--out", str(out)]) == 1
    assert "there is no such store" in capsys.readouterr().err
    (tmp_path / "text.db").write_text("not a database at all, but long enough to be one" * 50)
    assert main(["report", str(tmp_path / "text.db"), "--out", str(out)]) == 2


def test_without_matplotlib_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'skpll\[plot\]'"):
        write_report(fill(tmp_path / "empty.db", []), tmp_path / "out")


def test_a_report_on_ones_own_experiment_does_not_speak_of_the_paper(tmp_path):
    """The same data, the same labels, the same name: but not the paper's experiment."""
    text = shipped("table3").text
    specification = Specification.parse(text, quick=True)
    page = write_report(fill(tmp_path / "a.db", [specification]), tmp_path / "out")
    said = "".join(Outline(page.read_text(encoding="utf-8")).texts)
    assert "table3" in said
    assert "The paper and these results" not in said
    assert "paper 0." not in said
    assert not {"claims.csv", "table4.csv"} & {
        path.name for path in (tmp_path / "out/tables").iterdir()
    }


def test_a_new_table_is_one_function(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "REPORT_TABLES", [*load_tables()])

    @tables.report_table("slowest", kinds=("sensitivity",))
    def slowest(results, experiment):
        frame = results.nlargest(1, "seconds")[["method", "seconds"]]
        return tables.titled(frame, f"The slowest task of {experiment.name}")

    page = write_report(fill(tmp_path / "a.db", [shipped("figure6")]), tmp_path / "out")
    outline = Outline(page.read_text(encoding="utf-8"))
    assert "The slowest task of figure6" in outline.texts
    assert "tables/figure6-slowest.csv" in outline.links
    assert (tmp_path / "out" / "tables" / "figure6-slowest.tex").stat().st_size > 0


def test_the_docstring_of_a_table_is_its_title_and_notes(stored, monkeypatch):
    monkeypatch.setattr(tables, "REPORT_TABLES", [])

    @tables.report_table("sizes", kinds=("store",))
    def sizes(content):
        """How many results there are.

        Those that failed
        are not counted.

        Nor is what was not run.
        """
        frame = content.results.groupby("experiment", as_index=False).size()
        return tables.titled(frame, shown=["experiment"])

    ((table, frame),) = tables.make_tables(stored, "store", None)
    assert (table.name, frame.attrs["title"]) == ("sizes", "How many results there are")
    assert frame.attrs["notes"] == [
        "Those that failed are not counted.",
        "Nor is what was not run.",
    ]
    assert frame.attrs["shown"] == ["experiment"]
    assert not list(tables.make_tables(stored, "store", "paper"))
    assert not list(tables.make_tables(stored, "store", None, "in_results"))


def test_a_killed_run_beside_one_that_ended(tmp_path):
    fill(tmp_path / "some.db", [shipped("table3"), shipped("figure6")])
    with sqlite3.connect(tmp_path / "some.db") as connection:
        connection.execute("UPDATE runs SET ended = NULL WHERE experiment = 'figure6'")
        connection.execute("UPDATE runs SET ended = started WHERE experiment = 'table3'")
    connection.close()
    write_report(tmp_path / "some.db", tmp_path)
    with (tmp_path / "tables" / "environment.csv").open(newline="", encoding="utf-8") as file:
        ended = [line["ended"] for line in csv.DictReader(file)]
    assert sorted(text[-3:] for text in ended) == ["UTC", "off"]


def test_curves_of_other_kinds_are_figures_of_their_own(tmp_path):
    text = 'name = "kinds"\nkind = "curves"\n[protocol]\nfolds = 2\n'
    for more in ("", 'kind = "feature"', "noise = 0.2"):
        text += f'[[data]]\nname = "iris"\np = [0.2, 0.6]\n{more}\n'
    text += '[[methods]]\nmethod = "plknn"'
    write_report(fill(tmp_path / "a.db", [Specification.parse(text)]), tmp_path / "out")
    figures = {path.name for path in (tmp_path / "out" / "figures").glob("*.pdf")}
    assert figures == {
        "kinds-iris-r1.pdf",
        "kinds-iris-r1-feature.pdf",
        "kinds-iris-r1-noise0.2.pdf",
    }


def test_scalings_are_figures_of_their_own(tmp_path):
    text = 'name = "scaled"\nkind = "curves"\n[protocol]\nfolds = 2\n'
    for scaling in ("zscore", "sqrt"):
        text += f'[[data]]\nname = "iris"\np = [0.2, 0.6]\nscaling = "{scaling}"\n'
    text += '[[methods]]\nmethod = "plknn"'
    page = write_report(fill(tmp_path / "a.db", [Specification.parse(text)]), tmp_path / "out")
    figures = {path.name for path in (tmp_path / "out" / "figures").glob("*.pdf")}
    assert figures == {"scaled-iris-r1-zscore.pdf", "scaled-iris-r1-sqrt.pdf"}
    assert "zscore, sqrt" in Outline(page.read_text(encoding="utf-8")).texts


def test_nothing_imports_the_paper():
    """It plugs in: without its folder everything else works the same."""
    package = Path(experiments.__file__).parent
    for file in package.parent.rglob("*.py"):
        if file.is_relative_to(package / "paper"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
                assert "paper" not in ".".join(names).split("."), file


def test_results_that_are_older_than_the_code_are_told(tmp_path, monkeypatch):
    store = fill(tmp_path / "a.db", [shipped("figure6")])
    then = str(RESULT_VERSIONS["sppll"])
    monkeypatch.setitem(RESULT_VERSIONS, "sppll", 7)
    page = write_report(store, tmp_path / "out")
    said = "".join(Outline(page.read_text(encoding="utf-8")).texts)
    assert "30 results are older than the code." in said
    with (tmp_path / "out" / "tables" / "figure6-versions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["version"], row["code_has"], row["older"]) for row in rows} == {(then, "7", "3")}


# -- in a browser --------------------------------------------------------------------------


def column(browser, table, place):
    rows = f"{table} tbody tr > *:nth-child({place})"
    return [entry.get_attribute("data-value") for entry in browser.find_all(rows)]


def test_tables_are_sorted_by_click(browser, report):
    browser.open(report)
    table = "#table-table3-accuracy"
    before = column(browser, table, 2)
    head = browser.find(f"{table} th:nth-child(2)")
    head.find_element("css selector", "button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(browser, table, 2) == sorted(before, key=float) != before
    head.find_element("css selector", "button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column(browser, table, 2) == sorted(before, key=float, reverse=True)
    assert browser.console() == []
    assert browser.requests() == []


def test_tables_are_sorted_by_keyboard_and_gaps_stay_at_the_end(browser, report):
    from selenium.webdriver import ActionChains, Keys

    browser.open(report)
    table = "#table-claims"  # some claims have no figure, for their data are absent
    before = column(browser, table, 3)
    figures = sorted((value for value in before if value is not None), key=float)
    gaps = [None] * before.count(None)
    assert gaps
    first = browser.find(f"{table} th:nth-child(1) button")
    browser.driver.execute_script("arguments[0].focus()", first)
    ActionChains(browser.driver).send_keys(Keys.TAB, Keys.TAB, Keys.ENTER).perform()
    assert column(browser, table, 3) == figures + gaps
    ActionChains(browser.driver).send_keys(Keys.SPACE).perform()
    assert column(browser, table, 3) == figures[::-1] + gaps
    sorted_by = browser.find_all(f"{table} th[aria-sort]")
    assert [head.text.rstrip(" ↓") for head in sorted_by] == ["Here"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_the_window(browser, report, width, scheme):
    browser.prefer(scheme)
    browser.open(report, width=width)
    for details in browser.find_all("details"):
        browser.driver.execute_script("arguments[0].open = true", details)
    assert browser.overflow() <= 0
    figure = browser.find("figure:not(.wide) img").rect
    assert 300 <= figure["width"] <= width
    assert browser.find("figure.wide").rect["width"] <= width  # its content scrolls inside
    assert browser.find("figure.wide img").rect["width"] >= 480
    boxes = browser.driver.execute_script(
        "return [...document.querySelectorAll('.scroll')]"
        ".map(box => [box.scrollWidth > box.clientWidth, getComputedStyle(box).overflowX])"
    )
    assert {style for _, style in boxes} == {"auto"}
    assert any(wide for wide, _ in boxes) or width > 390
    assert browser.console() == []


def test_no_table_is_cut_off_on_paper(browser, report):
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.open(report)
    styles = browser.driver.execute_script(
        "return [...document.querySelectorAll('.scroll')]"
        ".map(box => getComputedStyle(box).overflow)"
    )
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert set(styles) == {"visible"}
    assert "The paper and these results" in browser.find("nav").get_attribute("textContent")


def test_the_ink_of_figures_goes_with_the_scheme(browser, report):
    filters = {}
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.open(report)
        filters[scheme] = browser.driver.execute_script(
            "return getComputedStyle(document.querySelector('figure img')).filter"
        )
    assert filters == {"light": "none", "dark": "invert(1) hue-rotate(180deg)"}
    loaded = "return [...document.images].every(image => image.naturalWidth > 100)"
    assert browser.driver.execute_script(loaded)
