"""The page of all runs, which also helps at the first start."""

from datetime import UTC, datetime

import gradio as gr

from app.runs import Services
from app.store import BadCursor, Page
from app.store.queries.runs import RunRow, list_runs
from app.ui import query
from app.ui.templates import render

REFRESH_SECONDS = 4.0


def runs_page(page: gr.Blocks, services: Services) -> None:
    gr.Markdown("# vlmscope\nReinforcement-learning runs of vision-language models")
    listing = gr.HTML(elem_id="runs", padding=False)
    timer = gr.Timer(REFRESH_SECONDS)

    def show(request: gr.Request) -> str:
        after = query.text(request, "after")
        with services.store.read() as session:
            try:
                found = list_runs(session, after=after, limit=50)
            except BadCursor:  # a link that was cut: begin at the newest
                found = list_runs(session, limit=50)
        return listed(found)

    page.load(show, outputs=listing, show_progress="hidden", api_visibility="private")
    timer.tick(show, outputs=listing, show_progress="hidden", api_visibility="private")


def listed(found: Page[RunRow]) -> str:
    """The table of runs."""
    return render("runs.html", runs=found.items, next=found.next, now=datetime.now(UTC))
