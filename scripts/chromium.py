"""Headless Chromium for scripts that look at pages."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from selenium import webdriver


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """Start it, and end it with the block; without its programs the script ends with a line that says so."""
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    if missing := [name for name, place in programs.items() if place is None]:
        sys.exit(f"no {' and '.join(missing)}; apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = programs["chromium"]
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    for argument in ["--headless=new", "--hide-scrollbars", "--disable-background-networking", "--disable-sync", *root]:
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(programs["chromedriver"]))
    try:
        yield driver
    finally:
        driver.quit()
