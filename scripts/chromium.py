"""Headless Chromium for scripts that open web pages."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from selenium import webdriver


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """Run headless Chromium during a `with` block. Exit with a message if chromium or chromedriver is missing."""
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    if missing := [name for name, path in programs.items() if path is None]:
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
