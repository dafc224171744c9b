"""The review page, in a real browser: click through, pick, download, and feed back."""

import base64
import csv
import hashlib
import json
import re
import time

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver.support.ui import Select, WebDriverWait

from skpll import as_candidates
from skpll.cli import DONE, main
from skpll.tables.learning import learn_from_table
from skpll.tables.reading import FrameTable
from skpll.tables.review import write_review

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


@pytest.fixture
def review(tmp_path):
    write_table(tmp_path / "table.csv")

    def run(*words):
        out, page = tmp_path / "out.csv", tmp_path / "review.html"
        words = [str(tmp_path / "table.csv"), "--candidates", "names", "--out", str(out), *words]
        status = main(["disambiguate", *words, "--report", str(page), "--id", "key", "--quiet"])
        assert status == DONE
        return page, pd.read_csv(out)

    return run


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
    wait.until(lambda _: card.find_elements("css selector", "details > .other"))


def choose(browser, selector, text):
    Select(browser.find(selector)).select_by_visible_text(text)


def data_of(page):
    text = page.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', text, re.S)[1])


def test_the_page_holds_what_was_decided(review):
    page, out = review()
    data = data_of(page)
    assert data["summary"]["rows"] == 60
    assert data["summary"]["mean_confidence"] == pytest.approx(out["confidence"].mean())
    assert sorted(row["r"] for row in data["rows"]) == list(range(1, 61))
    for row in data["rows"]:
        line = out.iloc[row["r"] - 1]
        assert data["classes"][row["y"]] == line["label"]
        assert row["p"][row["c"].index(row["y"])] == pytest.approx(line["confidence"], abs=1e-4)
        assert (len(row["c"]) == 1) == line["unanimous"]
        assert row["i"] == line["key"]
        assert row["x"][0] == str(line["x"])
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


def test_pick_download_and_feed_back(review, browser, tmp_path):
    page, before = review()
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    behaviour = {"behavior": "allow", "downloadPath": str(downloads)}
    browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
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
    assert "what the model sees instead" in line.text
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
    browser.find("#download").click()
    decisions = downloads / "decisions.csv"
    for _ in range(100):
        if decisions.exists():
            break
        time.sleep(0.05)
    with decisions.open(encoding="utf-8", newline="") as lines:
        assert {row["id"]: row["label"] for row in csv.DictReader(lines)} == picked
    _, after = review("--decisions", str(decisions))
    for name, label in picked.items():
        row = after[after["key"] == name].iloc[0]
        assert (row["label"], row["confidence"], row["unanimous"]) == (label, 1.0, False)
        assert row["decided"]
    assert after["unanimous"].sum() < before["unanimous"].sum()
    visit(browser, tmp_path / "review.html")
    choose(browser, "#filter", "decided by you")
    assert browser.find("#found").text == f"{len(picked)} rows"
    assert "decided by you" in browser.find(".row legend").text
    assert "certain" not in browser.find(".row legend").text
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
    n, q = 10_000, 300
    X = random.normal(size=(n, 3))
    sets = as_candidates([set(random.choice(q, 3, replace=False).tolist()) for _ in range(n)])
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


def test_only_the_rows_most_in_need_are_shown_of_very_many(tmp_path):
    frame = write_table(tmp_path / "t.csv")
    sets = as_candidates(frame["names"], sep="|")
    table = FrameTable(frame)
    learned = learn_from_table(table, sets, features=["x", "y"])
    write_review(tmp_path / "few.html", table, learned, max_rows=10)
    write_review(tmp_path / "all.html", table, learned)
    few, everything = data_of(tmp_path / "few.html"), data_of(tmp_path / "all.html")
    assert few["summary"]["rows"] == 60
    assert few["rows"] == everything["rows"][:10]


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
    assert browser.overflow() <= 0
    options = [option.text for option in Select(browser.find("#label")).options]
    assert options == ["any", *map(str, range(12))]
    columns = [cell.text for cell in browser.find_all("#map thead th")]
    assert columns == sorted(columns, key=int)
    assert [cell.text for cell in browser.find_all("#annotators th")] == ["ann", "bob"]
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
