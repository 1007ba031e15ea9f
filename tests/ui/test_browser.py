"""A person's way through the pages, with the whole service running and a real training behind it."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page

from tests.tiny_vlms import tiny_policy
from tests.ui.browser import browser_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """`vlmscope up` in a directory of its own, with a small model in it."""
    home = tmp_path_factory.mktemp("home")
    tiny_policy("smolvlm").save(home / "tiny")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "app.cli", "up", "--data-dir", str(home / "data"), "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_WAIT_POLICY": "PASSIVE"}
    process = subprocess.Popen(command, cwd=home, env=environment)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 90
    while not _ready(url):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.3)
    yield url
    process.terminate()
    assert process.wait(60) is not None


def _ready(url: str) -> bool:
    try:
        workers = httpx.get(f"{url}/api/v1/workers", timeout=2)
        return workers.is_success and bool(workers.json())
    except httpx.TransportError:
        return False


def fill(page: Page, name: str, value: str) -> None:
    """Fill a field of the form.  What is typed before Gradio has taken over the page is lost: it is typed again."""
    box = page.locator(f"#field-{name} input, #field-{name} textarea").first
    box.wait_for()
    for _ in range(20):
        box.fill(value)
        box.blur()
        page.wait_for_timeout(500)
        if box.input_value() == value:
            return
    raise AssertionError(f"the field {name} does not take {value!r}")


def test_a_run_is_launched_from_the_form_and_its_group_is_seen(address):
    with browser_page() as page:
        page.goto(f"{address}/launch")
        for name, value in {
            "name": "from the form",
            "model-path": "tiny",
            "generation-num_generations": "3",
            "generation-max_completion_length": "6",
            "optimization-max_steps": "3",
            "optimization-prompts_per_step": "2",
        }.items():
            fill(page, name, value)
        page.locator("#launch").click()
        page.locator("#launch-result a").wait_for(timeout=60_000)
        page.locator("#launch-result a").click()
        page.locator("#run-head .badge.succeeded").wait_for(timeout=120_000)
        assert "3 / 3" in page.locator("#run-head").inner_text()
        page.locator("#run-head a", has_text="Completions").click()
        page.locator("#groups .group").first.wait_for(timeout=30_000)
        assert page.locator("#groups .group").count() == 2
        group = page.locator("#groups .group").first
        assert group.locator(".card").count() == 3
        assert "accuracy" in group.locator(".card").first.inner_text()
        assert "advantage" in group.locator(".card").first.inner_text()
        image = group.locator("img").first
        page.wait_for_function("i => i.complete && i.naturalWidth > 0", arg=image.element_handle())
        page.locator("#completions-nav a", has_text="previous step").click()
        page.wait_for_url("**step=2**")
        page.go_back()
        page.locator("#completions-nav b", has_text="Step 3").wait_for()


def test_a_bad_value_in_the_form_is_refused_by_name_and_starts_nothing(address):
    before = len(httpx.get(f"{address}/api/v1/runs").json()["items"])
    with browser_page(width=800) as page:
        page.goto(f"{address}/launch")
        fill(page, "generation-num_generations", "1")
        fill(page, "model-path", "/no/such/model")
        page.locator("#launch").click()
        page.locator("#launch-result .badge.failed").first.wait_for(timeout=30_000)
        assert "generation.num_generations" in page.locator("#launch-result").inner_text()
        fill(page, "generation-num_generations", "4")
        page.locator("#check").click()
        page.locator("#launch-result b", has_text="model.path").wait_for(timeout=30_000)
    assert len(httpx.get(f"{address}/api/v1/runs").json()["items"]) == before
