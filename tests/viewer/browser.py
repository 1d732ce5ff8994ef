"""A headless Chromium for the tests of pages.

Where there is none with its chromedriver they are skipped, unless ZHEN_NEEDS_BROWSER says that
there must be one.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
NEEDED = os.environ.get("ZHEN_NEEDS_BROWSER") == "1"


def open_chrome(profile: Path) -> Iterator[Chrome]:
    """A browser that keeps what it logs and asks the network for; closed at the end."""
    if not (BROWSER and DRIVER):
        pytest.skip("no chromium with chromedriver here")
    options = ChromeOptions()
    options.binary_location = BROWSER
    for argument in (
        "headless=new",
        "no-sandbox",
        "disable-dev-shm-usage",
        "window-size=1200,1000",
    ):
        options.add_argument(f"--{argument}")
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = Chrome(options=options, service=ChromeService(DRIVER))
    yield chrome
    chrome.quit()


def requests(chrome: Chrome) -> list[str]:
    """The addresses that were asked for since the last look."""
    events = [json.loads(entry["message"])["message"] for entry in chrome.get_log("performance")]
    sent = [each for each in events if each["method"] == "Network.requestWillBeSent"]
    return [each["params"]["request"]["url"] for each in sent]
