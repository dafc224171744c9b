"""A headless Chromium for the tests of pages, with what went wrong on its console."""

import base64
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
CHROMEDRIVER = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")

SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
)


class Browser:
    """A page in a real browser.

    `driver` is selenium's own; the methods are what tests of pages ask again and again.
    """

    def __init__(self, driver):
        self.driver = driver

    def open(self, page: Path, *, width: int = 1280, height: int = 900) -> None:
        """Load a local page in a window whose content is exactly `width` pixels wide."""
        self.resize(width, height)
        self.driver.get(page.resolve().as_uri())

    def resize(self, width: int, height: int = 900) -> None:
        """Set the size of the page, below what a window of the desktop can shrink to."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme: str) -> None:
        """Make the page believe that the reader prefers the ``light`` or ``dark`` scheme."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def find(self, selector: str):
        """Find the first element that a CSS selector names; wait a little for it."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, 10, poll_frequency=0.05).until(
            lambda driver: driver.find_element("css selector", selector)
        )

    def find_all(self, selector: str) -> list:
        """Find all elements that a CSS selector names."""
        return self.driver.find_elements("css selector", selector)

    def console(self) -> list[str]:
        """Return what the browser complained about since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses of everything that the page loaded beside itself."""
        return self.driver.execute_script(
            "return performance.getEntriesByType('resource').map(entry => entry.name)"
        )

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        return self.driver.execute_script(
            "return document.documentElement.scrollWidth - window.innerWidth"
        )

    def screenshot(self, file: Path) -> None:
        """Save a picture of the whole page."""
        picture = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"captureBeyondViewport": True}
        )
        file.write_bytes(base64.b64decode(picture["data"]))


@pytest.fixture(scope="session")
def chromium(tmp_path_factory) -> Iterator[Browser]:
    """One browser for the whole session: starting it takes longer than any test."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if not CHROMIUM or not CHROMEDRIVER:
        pytest.skip("no chromium with chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in SWITCHES:
        options.add_argument(switch)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(CHROMEDRIVER))
    yield Browser(driver)
    driver.quit()


@pytest.fixture
def browser(chromium) -> Browser:
    """Yield a browser with an empty page and an empty console."""
    chromium.driver.get("about:blank")
    chromium.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chromium.console()
    return chromium
