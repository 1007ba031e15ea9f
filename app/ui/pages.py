"""All pages in one Gradio application, and its place in FastAPI."""

import gradio as gr
from fastapi import FastAPI
from gradio.themes import Soft

from app.runs import Services
from app.ui.completions import completions_page
from app.ui.launch import launch_page
from app.ui.run import run_page
from app.ui.runs import runs_page
from app.ui.templates import stylesheet


def build_pages(services: Services) -> gr.Blocks:
    """Runs, Launch, Run and Completions; each reads its state from the URL's query."""
    with gr.Blocks(title="vlmscope", analytics_enabled=False) as pages:
        runs_page(pages, services)
    with pages.route("Launch", "/launch") as page:
        launch_page(page, services)
    with pages.route("Run", "/run") as page:
        run_page(page, services)
    with pages.route("Completions", "/completions") as page:
        completions_page(page, services)
    # reads of the database do not wait for each other
    pages.queue(default_concurrency_limit=None)
    return pages


def mount(app: FastAPI, services: Services) -> None:
    """Serve the pages at the root; REST and images are routed before them."""
    gr.mount_gradio_app(
        app,
        build_pages(services),
        path="/",
        css=stylesheet(),
        theme=Soft(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
        ssr_mode=False,
        run_history=False,
        footer_links=[],
        show_error=False,
        mcp_server=False,
        max_file_size="1mb",
    )
