"""A headless Chromium for tests."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, sync_playwright

_FLAGS = ["no-sandbox", "disable-gpu", "disable-background-networking", "disable-component-update", "disable-sync"]


@contextmanager
def browser_page(width: int = 1440) -> Iterator[Page]:
    """A page of a new browser; whatever the pages write to the console as an error fails the test."""
    program = os.environ.get("VLMSCOPE_TEST_CHROMIUM") or shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on the PATH (Debian: apt-get install chromium)")
    errors: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[f"--{flag}" for flag in _FLAGS])
        page = browser.new_page(viewport={"width": width, "height": 1000})
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        browser.close()
    assert errors == []
