"""Take a picture of the review page of three simulated annotators' votes on handwritten digits.

python docs/figures/review.py docs/figures/review.png

It needs Chromium with its driver. The table is that of `examples/ambiguous_digits`.
"""

import os
import runpy
import shutil
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

from skpll.cli import DONE, main

TABLES = Path(__file__).parents[2] / "examples" / "ambiguous_digits" / "make_table.py"
COMMAND = "disambiguate digits.csv --exclude candidates --id name --votes votes.csv"


def take(page: Path, picture: Path) -> None:
    """Decide the first row as the model sees it, and take a picture of the rows."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    for switch in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{switch}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    size = {"width": 1200, "height": 840, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page.as_uri())
    driver.execute_script(
        "document.querySelectorAll('#rows input[type=radio]')[3].click();"
        "document.querySelector('#rows-heading').scrollIntoView()"
    )
    driver.save_screenshot(picture)
    driver.quit()


if __name__ == "__main__":
    picture = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        runpy.run_path(str(TABLES), run_name="__main__")
        done = main([*COMMAND.split(), "--out", "resolved.csv", "--report", "review.html"])
        assert done == DONE
        take(Path("review.html").resolve(), picture)
        os.chdir(picture.parent)
