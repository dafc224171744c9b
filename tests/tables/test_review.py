"""The review page, in a real browser: click through, pick, download, and feed back."""

import base64
import csv
import hashlib
import json
import re
import shutil
import struct
import time
import zlib

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver.support.ui import Select, WebDriverWait

from skpll import as_candidates
from skpll.cli import DONE, WRONG_INPUT, main
from skpll.tables._extra import TableWarning
from skpll.tables.blocks import kind_of
from skpll.tables.labels import LabelSource
from skpll.tables.learning import learn_from_table
from skpll.tables.reading import FrameTable
from skpll.tables.review import image_sources, write_review

EVIL = [
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    '"><b>bold</b>',
    "plain",
]


def write_table(path, n=60, labels=EVIL, seed=0):
    """Write clouds of points, one for each label; two in three rows have a false candidate."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, len(labels), n)
    points = random.normal(scale=0.8, size=(n, 2)) + 3 * np.column_stack((truth // 2, truth % 2))
    other = (truth + random.integers(1, len(labels), n)) % len(labels)
    names = [
        labels[a] if row % 3 == 0 else f"{labels[a]} | {labels[b]}"
        for row, (a, b) in enumerate(zip(truth, other, strict=True))
    ]
    ids = [f"<i>item</i> {row}, “{row}”" for row in range(n)]
    frame = pd.DataFrame({"key": ids, "x": points[:, 0], "y": points[:, 1], "names": names})
    frame.loc[0, "names"] = labels[(truth[0] + 1) % len(labels)]  # certain and wrong
    frame.to_csv(path, index=False)
    return frame


def run(folder, *words):
    """Learn from the table in a folder; return the page and the table that came out."""
    out, page = folder / "out.csv", folder / "review.html"
    words = [str(folder / "table.csv"), "--candidates", "names", "--out", str(out), *words]
    status = main(["disambiguate", *words, "--report", str(page), "--id", "key", "--quiet"])
    assert status == DONE
    return page, read(out)


def read(out):
    """Read the table that came out, numbers to the last digit."""
    return pd.read_csv(out, engine="python")  # which a newer pandas reads exactly


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("review")
    write_table(folder / "table.csv")
    run(folder)
    return folder


@pytest.fixture
def review(first_run, tmp_path):
    """The review of one table: as it was the first time, or with further options."""
    shutil.copytree(first_run, tmp_path, dirs_exist_ok=True)

    def again(*words):
        if words:
            return run(tmp_path, *words)
        return tmp_path / "review.html", read(tmp_path / "out.csv")

    return again


def visit(browser, page, **size):
    """Open a page that remembers nothing of earlier tests."""
    browser.open(page, **size)
    browser.driver.execute_script("localStorage.clear()")
    browser.open(page, **size)


def click(browser, element):
    """Click where nothing covers the element: the driver scrolls under the fixed footer."""
    browser.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def unfold(browser, card):
    """Open what a row hides and wait for it: browsers say later that something was opened."""
    click(browser, card.find_element("css selector", "summary"))
    wait = WebDriverWait(browser.driver, 10, poll_frequency=0.05)
    wait.until(lambda _: card.find_elements("css selector", "details > .fields"))


def press(browser, *keys):
    """Send keys to whatever has the focus."""
    for key in keys:
        browser.driver.switch_to.active_element.send_keys(key)


def downloaded(browser, folder, name):
    """Press the button and read the file that comes."""
    behaviour = {"behavior": "allow", "downloadPath": str(folder)}
    browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    browser.find("#download").click()
    for _ in range(100):
        if (folder / name).exists():
            break
        time.sleep(0.05)
    with (folder / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def choose(browser, selector, text):
    Select(browser.find(selector)).select_by_visible_text(text)


def data_of(page):
    text = page.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', text, re.S)[1])


def test_the_page_holds_what_was_decided(review):
    page, out = review()
    data = data_of(page)
    assert data["origin"] == "with PL-LOO"
    assert data["summary"]["rows"] == 60
    four_digits = 5e-5  # the file has confidences with four digits
    expected = pytest.approx(out["confidence"].mean(), abs=four_digits)
    assert data["summary"]["mean_confidence"] == expected
    assert sorted(row["r"] for row in data["rows"]) == list(range(1, 61))
    for row in data["rows"]:
        line = out.iloc[row["r"] - 1]
        assert data["classes"][row["y"]] == line["label"]
        assert row["p"][row["c"].index(row["y"])] == pytest.approx(line["confidence"], abs=1e-4)
        assert (len(row["c"]) == 1) == line["unanimous"]
        assert row["i"] == line["key"]
        assert float(row["x"][0]) == pytest.approx(line["x"], rel=1e-14)  # pandas rounds
    first = next(row for row in data["rows"] if row["r"] == 1)
    assert first["m"] != first["y"]  # the row that is certain and wrong
    assert data["contradictions"] == sum("m" in row for row in data["rows"])
    needs = [1 - row["p"][row["c"].index(row["y"])] for row in data["rows"] if "m" not in row]
    assert needs == sorted(needs, reverse=True)
    assert data["map"]["counts"] == np.transpose(data["map"]["counts"]).tolist()
    close = sum("k" in row for row in data["rows"])
    assert np.sum(data["map"]["counts"]) == 2 * close


def test_nothing_but_the_page_s_own_script_and_style_may_run(review):
    text = review()[0].read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    for tag in ("script", "style"):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "<b>bold</b>" not in text


def test_text_of_the_table_is_never_markup(review, browser):
    page, _ = review()
    assert "<img src=x" not in page.read_text(encoding="utf-8")
    visit(browser, page)
    assert browser.driver.execute_script("return window.hacked") is None
    assert browser.find_all("#rows img, #rows b, #rows i, #map img, #map b") == []
    shown = {element.text for element in browser.find_all(".candidate .what")}
    assert shown <= set(EVIL)
    assert "<i>item</i>" in browser.find(".row .name").text
    assert browser.console() == []
    assert browser.requests() == []


def test_doubt_in_all_candidates_says_what_the_confidences_assume(browser, tmp_path):
    random = np.random.default_rng(0)
    truth = random.integers(3, size=90)
    frame = pd.DataFrame(5 * np.eye(3)[truth] + random.normal(size=(90, 3)), columns=list("abc"))
    sets = [{int(y), int((y + 1) % 3)} for y in truth]
    sets[0] = {(truth[0] + 1) % 3, (truth[0] + 2) % 3}
    learned = learn_from_table(FrameTable(frame), as_candidates(sets))
    write_review(tmp_path / "page.html", FrameTable(frame), learned)
    visit(browser, tmp_path / "page.html")
    choose(browser, "#filter", "suspects")
    card = browser.find(".row")
    assert "row 1" in card.text.lower()
    assert "all candidates seem to be wrong" in card.text
    assert re.search(
        r"All candidates are wrong with a probability of (> )?[\d.]+ %; "
        "the confidences above hold if one of them is right",
        card.text,
    )


def test_labels_of_the_votes_alone_are_doubted_by_the_votes_alone(tmp_path):
    random = np.random.default_rng(0)
    truth = random.integers(4, size=200)
    frame = pd.DataFrame({"noise": random.normal(size=200)})
    for who in ("ann", "bob", "eve"):
        guessed = random.integers(4, size=200)
        frame[who] = np.where(random.random(200) < 0.8, truth, guessed).astype(str)
    table = FrameTable(frame)
    labels = LabelSource(annotators=["ann", "bob", "eve"]).read(table)
    with pytest.warns(TableWarning, match="the labels are those of the votes alone"):
        learned = learn_from_table(table, labels)
    write_review(tmp_path / "page.html", table, learned)
    data = data_of(tmp_path / "page.html")
    assert data["origin"] == "from the votes alone"
    sets = learned.resolution.candidates
    inside = sets.row_sums(learned.resolution.confidences)
    np.testing.assert_allclose(learned.missing() + inside, 1, atol=1e-12)


def test_pick_download_and_feed_back(review, browser, tmp_path):
    page, before = review()
    visit(browser, page)
    assert not browser.find("#download").is_enabled()
    picked = {}
    choose(browser, "#filter", "several candidates")
    for card in browser.find_all(".row:has(.candidate + .candidate)")[:3]:
        line = card.find_elements("css selector", ".candidate")[-1]
        click(browser, line)
        name = card.find_element("css selector", ".name").text
        picked[name] = line.find_element("css selector", ".what").text
    # What the model sees is a button, for the row whose only candidate is wrong.
    choose(browser, "#filter", "suspects")
    choose(browser, "#order", "as in the table")
    card = browser.find(".row")
    assert "the only candidate seems to be wrong" in card.text
    line = card.find_elements("css selector", ".candidate")[-1]
    instead = card.find_element("css selector", ".instead").text
    assert "What the model sees instead. The only candidate is wrong with" in instead
    assert line.find_elements("xpath", "ancestor::div[@class='instead']")
    click(browser, line)
    name = card.find_element("css selector", ".name").text
    assert name not in picked
    picked[name] = line.find_element("css selector", ".what").text
    # A label that is neither, typed.
    choose(browser, "#filter", "one candidate")
    card = browser.find_all(".row")[-1]
    unfold(browser, card)
    field = card.find_element("css selector", "input[type=text]")
    field.send_keys("unheard of", "\ue007")
    assert f"{len(picked)} in all" in browser.find("#count").text
    field.clear()
    field.send_keys("plain", "\ue007")
    picked[card.find_element("css selector", ".name").text] = "plain"
    choose(browser, "#filter", "all rows")
    assert browser.find("#count").text == f"{len(picked)} of 60 decided"
    assert browser.find("#progress").get_attribute("value") == str(len(picked))
    rows = downloaded(browser, tmp_path, "decisions.csv")
    assert {row["id"]: row["label"] for row in rows} == picked
    _, after = review("--decisions", str(tmp_path / "decisions.csv"))
    for name, label in picked.items():
        row = after[after["key"] == name].iloc[0]
        assert (row["label"], row["confidence"], row["unanimous"]) == (label, 1.0, False)
        assert row["decided"]
    assert after["unanimous"].sum() < before["unanimous"].sum()
    visit(browser, tmp_path / "review.html")
    choose(browser, "#filter", "decided by you")
    assert browser.find("#found").text == f"{len(picked)} rows"
    assert "decided by you" in browser.find(".row legend").text
    assert "from the start" not in browser.find(".row legend").text
    click(browser, browser.find("#summary-part summary"))
    assert "Decided by you" in browser.find("#summary").text


def test_decisions_survive_a_reload_and_can_be_taken_back(review, browser):
    page, _ = review()
    visit(browser, page)
    click(browser, browser.find(".row .candidate"))
    browser.find("#download").click()  # what is downloaded may be left without a question
    browser.driver.refresh()
    assert "1 of 60 decided" in browser.find("#count").text
    unfold(browser, browser.find(".row"))
    click(browser, browser.find(".row .undo"))
    assert "0 of 60 decided" in browser.find("#count").text
    assert browser.find_all(".row.decided") == []


def test_filter_search_sort_and_map(review, browser):
    page, out = review()
    visit(browser, page)
    found = browser.find("#found")
    assert found.text == "60 rows"
    choose(browser, "#filter", "one candidate")
    assert found.text == f"{out['unanimous'].sum()} rows"
    choose(browser, "#filter", "all rows")
    browser.find("#search").send_keys("item</i> 17,")
    assert found.text == "1 row"
    assert "row 18" in browser.find(".row legend").text
    browser.find("#search").clear()
    browser.find("#search").send_keys(" ")
    choose(browser, "#order", "as in the table")
    numbers = [element.text for element in browser.find_all(".row legend .tag:nth-child(2)")]
    assert numbers == [f"row {n}" for n in range(1, 26)]
    click(browser, browser.find("#next"))
    assert "row 26" in browser.find(".row legend").text
    click(browser, browser.find("#map-part summary"))
    field = browser.find("#map button")
    count = int(field.text)
    click(browser, field)
    assert found.text == f"{count} row{'s' if count > 1 else ''}"
    browser.find("#pair").click()
    assert found.text == "60 rows"


def test_the_keyboard_is_enough(review, browser):
    page, _ = review()
    visit(browser, page)
    body = browser.find("body")
    body.send_keys("j")
    active = browser.driver.switch_to.active_element
    assert active.get_attribute("class") == "row"
    active.send_keys("1")
    assert browser.find(".row.decided input").is_selected()
    active.send_keys("j")
    browser.driver.switch_to.active_element.send_keys("1")
    assert len(browser.find_all(".row.decided")) == 2
    browser.driver.switch_to.active_element.send_keys("0")
    assert len(browser.find_all(".row.decided")) == 1
    browser.driver.switch_to.active_element.send_keys("\ue013", "u", "u", "2")  # arrow up
    assert browser.find_all(".row")[0].get_attribute("class") == "row decided"
    assert len(browser.find_all(".row.decided")) == 2
    browser.driver.switch_to.active_element.send_keys("\ue015", "1")  # arrow down
    assert browser.find_all(".row")[2].get_attribute("class") == "row decided"
    browser.driver.switch_to.active_element.send_keys("\ue014")  # arrow right
    assert "Page 2" in browser.find("#page").text
    browser.driver.switch_to.active_element.send_keys("u")
    browser.driver.switch_to.active_element.send_keys("\ue012")  # arrow left
    assert "Page 1" in browser.find("#page").text
    assert len(browser.find_all(".row.decided")) == 2
    browser.driver.switch_to.active_element.send_keys("/")
    assert browser.driver.switch_to.active_element.get_attribute("id") == "search"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_on_a_phone(review, browser, scheme):
    page, _ = review()
    browser.prefer(scheme)
    visit(browser, page, width=360, height=740)
    unfold(browser, browser.find(".row"))
    assert browser.overflow() <= 0
    assert browser.find("#download").rect["height"] >= 40


def test_many_rows_and_classes_stay_swift(browser, tmp_path):
    random = np.random.default_rng(0)
    n, q = 10_000, 60
    truth = random.integers(q, size=n)
    X = 3 * random.normal(size=(q, 3))[truth] + random.normal(size=(n, 3))
    sets = as_candidates([{int(y), *random.choice(q, 2).tolist()} for y in truth])
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    learned = learn_from_table(FrameTable(frame), sets, method="plknn")
    page = tmp_path / "many.html"
    write_review(page, FrameTable(frame), learned)
    visit(browser, page)
    assert browser.find("#found").text == "10,000 rows"
    assert len(browser.find_all(".row")) == 25
    # Nothing the page does may touch all rows of the document: only one page of it exists.
    assert browser.driver.execute_script("return document.querySelectorAll('*').length") < 3000
    spent = browser.driver.execute_script(
        "const start = performance.now(); const box = document.getElementById('search');"
        "for (const text of ['1', '12', '123']) {"
        "  box.value = text; box.dispatchEvent(new Event('input')); }"
        "return document.querySelectorAll('.row').length"
    )
    assert spent == 25
    assert len(browser.find_all("#map tbody tr")) == 15


def test_only_the_rows_most_in_need_are_shown_of_very_many(tmp_path, monkeypatch):
    frame = write_table(tmp_path / "t.csv")
    sets = as_candidates(frame["names"], sep="|")
    table = FrameTable(frame)
    learned = learn_from_table(table, sets, features=["x", "y"])
    write_review(tmp_path / "all.html", table, learned)
    monkeypatch.setattr("skpll.tables.review._MAX_ROWS", 10)
    write_review(tmp_path / "few.html", table, learned)
    few, everything = data_of(tmp_path / "few.html"), data_of(tmp_path / "all.html")
    assert few["summary"]["rows"] == 60
    assert few["rows"] == everything["rows"][:10]


def assert_annotators_can_be_sorted(browser):
    """Annotators are out of the way at first; the head of a column sorts by it."""
    assert not browser.find("#annotators").is_displayed()
    click(browser, browser.find("#annotators-part summary"))
    heads = browser.find_all("#annotators-head th")
    for place, ordered in ((3, ["ann", "bob"]), (3, ["bob", "ann"]), (0, ["bob", "ann"])):
        click(browser, heads[place].find_element("css selector", "button"))
        assert [cell.text for cell in browser.find_all("#annotators th")] == ordered
    assert heads[0].get_attribute("aria-sort") == "descending"
    assert heads[3].get_attribute("aria-sort") is None


def test_all_cells_numeric_labels_votes_and_reasons(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    truth = random.integers(0, 12, 240)
    X = np.eye(12)[truth] * 3 + random.normal(size=(240, 12))
    frame = pd.DataFrame(X.round(2), columns=[f"x{j}" for j in range(12)])
    for place in range(8):
        frame[f"more{place}"] = random.integers(0, 9, 240)
    for who, skill in (("ann", 0.9), ("bob", 0.7)):
        wrong = (truth + random.integers(1, 12, 240)) % 12
        frame[who] = np.where(random.random(240) < skill, truth, wrong)
    frame.to_csv("t.csv", index=False)
    words = ["t.csv", "--annotators", "ann,bob", "--out", "out.csv", "--report", "page.html"]
    assert main(["disambiguate", *words, "--explain", "--quiet"]) == DONE
    page = tmp_path / "page.html"
    visit(browser, page, width=360, height=740)
    assert "240 rows, labels found from the votes and PL-LOO." in browser.find("#made").text
    assert browser.overflow() <= 0
    options = [option.text for option in Select(browser.find("#label")).options]
    assert options == ["any", *map(str, range(12))]
    click(browser, browser.find("#map-part summary"))
    columns = [cell.text for cell in browser.find_all("#map thead th")]
    assert columns == sorted(columns, key=int)
    assert_annotators_can_be_sorted(browser)
    click(browser, browser.find("#columns-part summary"))
    choose(browser, "#filter", "several candidates")
    card = browser.find(".row")
    assert re.search(r"1 vote: (ann|bob)", card.text)
    assert re.search(r"most like row \d+, row \d+", card.text)
    assert len(browser.find_all("#columns li")) == 10
    unfold(browser, card)
    names = [cell.text for cell in card.find_elements("css selector", ".cells dt")]
    assert names == [f"x{j}" for j in range(12)] + [f"more{j}" for j in range(8)]
    for option in browser.find_all("#filter option"):  # no text of a menu is cut off
        assert len(option.text) <= 20
    assert browser.console() == []


def write_picture(path, shade):
    """Write a grey square of four by four pixels as PNG."""

    def chunk(name, content):
        return (
            struct.pack(">I", len(content))
            + name
            + content
            + struct.pack(">I", zlib.crc32(name + content))
        )

    lines = zlib.compress((b"\0" + bytes([shade] * 4)) * 4)
    head = struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", lines)
    path.write_bytes(content + chunk(b"IEND", b""))


@pytest.fixture
def letters(tmp_path, monkeypatch):
    """A table of texts and pictures, and eight columns of numbers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scans").mkdir()
    frame = write_table(tmp_path / "t.csv", labels=["invoice", "letter", "form", "note"], n=40)
    frame["text"] = [
        f"Dear reader of line {row},\nthe <b>total</b> is {row} Euros (a.b)." for row in range(40)
    ]
    frame["text"] += " word" * 300 + " end"
    frame["scan"] = [f"scans/ü {row}.png" for row in range(40)]
    for row in range(39):  # the last is not there
        write_picture(tmp_path / "scans" / f"ü {row}.png", 6 * row)
    for place in range(8):
        frame[f"n{place}"] = np.arange(40) % (place + 2)
    frame.to_csv("letters.csv", index=False)
    return ["letters.csv", "--candidates", "names", "--id", "key", "--features", "x,y", "--quiet"]


def test_a_card_has_text_pictures_and_neighbours(letters, browser, tmp_path, monkeypatch):
    monkeypatch.setattr("skpll.tables.review._MAX_ALL_PICTURES_BYTES", 800)  # then they are linked
    (tmp_path / "pages").mkdir()
    page = tmp_path / "pages" / "page.html"
    words = ["--out", "out.csv", "--report", str(page), "--explain"]
    assert main(["disambiguate", *letters, *words]) == DONE
    visit(browser, page)
    card = browser.find(".row")
    text = card.find_element("css selector", ".text").text
    assert "the <b>total</b> is" in text
    assert text.endswith("end")
    assert card.find_elements("css selector", ".content .cells") == []
    choose(browser, "#order", "as in the table")
    widths = browser.driver.execute_script(
        "const found = [...document.querySelectorAll('.picture')].map((image) => {"
        "image.loading = 'eager'; return image.decode().then(() => image.naturalWidth); });"
        "return Promise.all(found)"
    )
    assert widths == [4] * 25
    sources = {image.get_attribute("src")[:5] for image in browser.find_all(".picture")}
    assert sources == {"data:", "file:"}
    assert all("/scans/%C3%BC%20" in address for address in browser.requests())
    row = next(row for row in data_of(page)["rows"] if row["r"] == 1)
    near = [number for numbers in row["n"].values() for number in numbers]
    assert len(browser.find_all(".row:first-child .why .thumbnail")) == len(near) > 0
    search = browser.find("#search")
    search.send_keys("(a.b) 17,")
    assert browser.find("#found").text == "1 row"
    marks = [mark.text for mark in browser.find_all(".row mark")]
    assert {"(a.b)", "17,"} == set(marks)
    search.clear()
    search.send_keys("39.png")
    assert "ü 39.png (picture not found)" in browser.find(".row").text
    assert browser.console() == []


def test_chosen_columns_are_shown_and_hits_elsewhere(letters, browser, tmp_path):
    page = tmp_path / "page.html"
    words = ["--out", "out.csv", "--report", str(page), "--show", "n3,text"]
    assert main(["disambiguate", *letters, *words]) == DONE
    visit(browser, page)
    shown = [cell.text for cell in browser.find_all(".row:first-child .content dt")]
    assert shown == ["n3"]
    assert len(browser.find_all(".text")) == 25
    assert browser.find_all("img") == []
    browser.find("#search").send_keys("scans/ü 12.png")
    assert browser.find("#found").text == "1 row"
    shown = [cell.text for cell in browser.find_all(".row:first-child .content dt")]
    assert shown == ["n3", "scan"]
    words[-1] = "n33"
    assert main(["disambiguate", *letters, *words]) == WRONG_INPUT


def test_links_to_pictures_elsewhere_name_their_host_only():
    there = ["https://a.example:8000/x.png", "http://b.example/y.jpg?size=2", "data:image/png,"]
    assert image_sources(there) == "data: http://b.example https://a.example:8000"
    assert image_sources(["https://a.example; script-src */b.png"]) == "'self' data: file:"
    assert kind_of(["http://b.example/y.jpg?size=2", "", "https://[/a.png"]) == "picture"
    assert kind_of(["a.png is the name of a picture", ""]) == "text"
    assert kind_of([""]) == kind_of(["3", "4"]) == ""


def test_notes_other_labels_and_undo_by_keyboard(review, browser, tmp_path):
    page, _ = review()
    visit(browser, page)
    browser.find("body").send_keys("j")
    press(browser, "n", 'see 5, "again"', "\ue00c")  # escape
    assert browser.driver.switch_to.active_element.get_attribute("class") == "row"
    press(browser, "\ue015", "1", "\ue015", "o", "plain\ue007", "\ue00c")
    assert browser.find("#count").text == "2 of 60 decided"
    browser.find("#undo").click()
    assert browser.find("#count").text == "1 of 60 decided"
    names = [element.text for element in browser.find_all(".row .name")[:2]]
    rows = downloaded(browser, tmp_path, "decisions.csv")
    assert {row["id"]: row["note"] for row in rows} == {names[0]: 'see 5, "again"', names[1]: ""}
    assert next(row for row in rows if row["id"] == names[0])["label"] == ""
    _, after = review("--decisions", str(tmp_path / "decisions.csv"))
    assert after["decided"].sum() == 1
    visit(browser, tmp_path / "review.html")
    browser.find("body").send_keys("?")
    assert browser.find("#keys-part").get_attribute("open")


def test_on_paper_all_chosen_rows_are_there(review, browser):
    page, _ = review()
    visit(browser, page)
    browser.driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert len(browser.find_all(".row")) == 60
    browser.driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert len(browser.find_all(".row")) == 25


def test_an_audit_on_the_page_is_blind_and_comes_back(review, browser, tmp_path, capsys):
    review()
    labels, check = tmp_path / "out.csv", tmp_path / "check.html"
    assert main(["audit", str(labels), "--rows", "20", "--out", str(check)]) == DONE
    assert f"--decisions {tmp_path / 'check.csv'}" in capsys.readouterr().out
    visit(browser, check)
    assert browser.find("#found").text == "20 rows"
    table = pd.read_csv(labels)
    for hidden in ("#summary-part", "#map-part", ".share", ".chosen", "#label", "#order"):
        assert not any(found.is_displayed() for found in browser.find_all(hidden))
    names = [column["name"] for column in data_of(check)["columns"]]
    assert names == ["key", "x", "y", "names"]
    numbers = []
    browser.find("body").send_keys("j")
    for place, card in enumerate(browser.find_all(".row")[:18]):
        numbers.append(int(card.find_element("css selector", ".name").text.split()[1]))
        choices = [line.text for line in card.find_elements("css selector", ".what")]
        assert choices == sorted(EVIL)
        right = choices.index(table["label"][numbers[-1] - 1])
        if place == 3:
            press(browser, "o", "something new\ue007", "\ue00c", "\ue015")
        else:
            press(browser, str(right + 1), "\ue015")
    assert numbers == sorted(numbers)
    rows = downloaded(browser, tmp_path, "check.csv")
    assert len(rows) == 20
    assert sum(row["label"] == "" for row in rows) == 2
    capsys.readouterr()
    words = ["audit", str(labels), "--decisions", str(tmp_path / "check.csv"), "--json"]
    assert main(words) == DONE
    found = json.loads(capsys.readouterr().out)
    assert found["decided"] == 18
    weights = np.array([float(row["weight"]) for row in rows if row["label"]])
    strata = [row["stratum"] for row in rows if row["label"]]
    wrong = [row["label"] == "something new" for row in rows if row["label"]]
    assert 1 - 2 * weights[wrong][0] / 60 < found["accuracy"] < 1
    assert len(set(strata)) > 1
    assert browser.console() == []
