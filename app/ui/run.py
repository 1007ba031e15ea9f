"""The page of one run: state, progress, curves, log; it refreshes itself until the run has ended."""

from datetime import UTC, datetime, timedelta
from typing import Any

import gradio as gr
import pandas as pd

from app.runs import AlreadyEnded, NoSuchRun, Services
from app.store.queries.logs import events, log_lines
from app.store.queries.metrics import metric_names, series
from app.store.queries.runs import RunDetail, get_run
from app.store.states import FINAL
from app.ui import query
from app.ui.templates import duration, render
from training.config import dump_toml

REFRESH_SECONDS = 3.0
MAX_POINTS = 600
CURVES = ("reward", "loss", "completions/mean_length", "frac_reward_zero_std")


def run_page(page: gr.Blocks, services: Services) -> None:
    head = gr.HTML(elem_id="run-head", padding=False)
    with gr.Row():
        cancel = gr.Button(
            "Cancel this run", variant="stop", visible=False, elem_id="cancel", scale=0, min_width=180, size="sm"
        )
    with gr.Row():
        rewards = gr.LinePlot(x="step", y="value", color="metric", title="rewards", elem_id="curve-rewards")
        loss = gr.LinePlot(x="step", y="value", title="loss", elem_id="curve-loss")
    with gr.Row():
        length = gr.LinePlot(x="step", y="value", title="mean completion length (tokens)")
        dead = gr.LinePlot(x="step", y="value", title="share of groups without signal")
    log = gr.HTML(elem_id="run-log", padding=False)
    with gr.Accordion("Configuration", open=False):
        config = gr.Code(language=None, interactive=False, label="TOML")
    timer = gr.Timer(REFRESH_SECONDS)
    outputs = [head, cancel, rewards, loss, length, dead, log, config, timer]

    def show(request: gr.Request) -> list[Any]:
        run_id = query.integer(request, "run")
        with services.store.read() as session:
            run = None if run_id is None else get_run(session, run_id)
            if run is None:
                empty = frame({})
                no_run = render("run.html", run=None)
                return [no_run, gr.update(visible=False), *[empty] * 4, "", "", gr.Timer(active=False)]
            names = ["reward", *(n for n in metric_names(session, run.id) if is_reward_mean(n)), *CURVES[1:]]
            points = series(session, run.id, names, max_points=MAX_POINTS)
            lines, happened = log_lines(session, run.id, tail=True), events(session, run.id, limit=30, tail=True)
        ended = run.state in FINAL
        curves = {name: values for name, values in points.items() if name == "reward" or is_reward_mean(name)}
        return [
            shown(run),
            gr.update(visible=not ended),
            frame(curves),
            *(frame({name: points[name]}) for name in CURVES[1:]),
            render("log.html", events=happened, lines=lines),
            dump_toml(run.config),
            gr.Timer(active=not ended),
        ]

    def stop(request: gr.Request) -> None:
        run_id = query.integer(request, "run")
        try:
            services.runs.cancel(run_id or 0)
        except (NoSuchRun, AlreadyEnded) as error:
            gr.Warning(str(error))

    page.load(show, outputs=outputs, show_progress="hidden", api_visibility="private")
    timer.tick(show, outputs=outputs, show_progress="hidden", api_visibility="private")
    cancel.click(stop, api_visibility="private").then(show, outputs=outputs, api_visibility="private")


def is_reward_mean(name: str) -> bool:
    return name.startswith("rewards/") and name.endswith("/mean")


def frame(points: dict[str, list[tuple[int, float]]]) -> pd.DataFrame:
    """Curves as LinePlot takes them."""
    rows = [(step, value, name) for name, values in points.items() for step, value in values]
    return pd.DataFrame(rows, columns=["step", "value", "metric"])


def shown(run: RunDetail) -> str:
    """Head of the page."""
    now = datetime.now(UTC)
    return render("run.html", run=run, now=now, eta=remaining(run, now))


def remaining(run: RunDetail, now: datetime) -> str:
    """About how long the run will still take, by its mean pace; empty before its first steps and after its end."""
    if run.started_at is None or run.ended_at is not None or run.step < 2:
        return ""
    left = (now - run.started_at) / run.step * (run.max_steps - run.step)
    return duration(now, now + timedelta(seconds=left.total_seconds()))
