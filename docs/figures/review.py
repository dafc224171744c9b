"""Take a picture of the review page of three simulated annotators' votes on handwritten digits.

python docs/figures/review.py docs/figures/review.png

It needs Chromium with its driver. The table is that of `examples/ambiguous_digits`, with a
picture of each digit.
"""

import csv
import os
import runpy
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib.image
import numpy as np
from selenium import webdriver
from sklearn.datasets import load_digits

from skpll.cli import DONE, main

TABLES = Path(__file__).parents[2] / "examples" / "ambiguous_digits" / "make_table.py"
COMMAND = "disambiguate table.csv --exclude candidates,scan --id name --votes votes.csv --explain"


def add_pictures() -> None:
    """Write each digit as a picture, and a table with the names of these files."""
    with Path("digits.csv").open(newline="") as source:
        names, *rows = list(csv.reader(source))
    for row, image in zip(rows, load_digits().images, strict=True):
        row.append(f"{row[0]}.png")
        matplotlib.image.imsave(row[-1], np.kron(16 - image, np.ones((6, 6))), cmap="gray")
    with Path("table.csv").open("w", newline="") as target:
        csv.writer(target).writerows([[*names, "scan"], *rows])


def take(page: Path, picture: Path) -> None:
    """Decide the first row as the model sees it, and take a picture of the page."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    for switch in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{switch}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    size = {"width": 1200, "height": 930, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page.as_uri())
    driver.execute_script("document.querySelectorAll('#rows input[type=radio]')[3].click()")
    driver.save_screenshot(picture)
    driver.quit()


if __name__ == "__main__":
    picture = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        runpy.run_path(str(TABLES), run_name="__main__")
        add_pictures()
        done = main([*COMMAND.split(), "--out", "resolved.csv", "--report", "review.html"])
        assert done == DONE
        take(Path("review.html").resolve(), picture)
        os.chdir(picture.parent)
