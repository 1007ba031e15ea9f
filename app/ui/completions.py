"""The page of completions: every prompt of a step with its images and all its completions side by side."""

from typing import Any
from urllib.parse import urlencode

import gradio as gr

from app.runs import Services
from app.store import BadCursor, Page
from app.store.queries.completions import get_group, groups, steps
from app.store.queries.rows import GroupRow, StepRange
from app.ui import query
from app.ui.templates import render

PAGE_SIZE = 10
_GO = "(step) => { const u = new URL(location); u.searchParams.set('step', step); u.searchParams.delete('after'); \
u.searchParams.delete('group'); location.assign(u); }"


def completions_page(page: gr.Blocks, services: Services) -> None:
    navigation = gr.HTML(elem_id="completions-nav", padding=False)
    step_picker = gr.Slider(1, 2, step=1, label="step", elem_id="step", visible=False)
    listing = gr.HTML(elem_id="groups", padding=False)

    def show(request: gr.Request) -> list[Any]:
        run_id, group_id = query.integer(request, "run"), query.integer(request, "group")
        if run_id is None:
            nothing = "Choose a run first: open Runs and follow “completions”."
            return ["", gr.update(visible=False), render("groups.html", groups=[], nothing=nothing)]
        with services.store.read() as session:
            known = steps(session, run_id)
            if group_id is not None:
                group = get_group(session, group_id)
                found = Page([group] if group is not None and group.run_id == run_id else [], None)
                step = found.items[0].step if found.items else None
            else:
                step = query.integer(request, "step") or known.last
                found = _groups(session, run_id, step, query.text(request, "after"))
        picker = gr.update(visible=False)
        if step is not None and known.first is not None and known.last is not None and known.last > known.first:
            picker = gr.update(visible=True, minimum=known.first, maximum=known.last, value=step)
        return [links(run_id, step, known, found, whole_step=group_id is None), picker, listed(found.items)]

    page.load(show, outputs=[navigation, step_picker, listing], show_progress="hidden", api_visibility="private")
    step_picker.release(None, inputs=step_picker, js=_GO)


def _groups(session: Any, run_id: int, step: int | None, after: str | None) -> Page[GroupRow]:
    try:
        return groups(session, run_id, step=step, after=after, limit=PAGE_SIZE)
    except BadCursor:  # a link that was cut: begin at the first group
        return groups(session, run_id, step=step, limit=PAGE_SIZE)


def links(run_id: int, step: int | None, known: StepRange, found: Page[GroupRow], *, whole_step: bool) -> str:
    """The run, the steps before and after, the next page."""

    def to(**parameters: Any) -> str:
        return "/completions?" + urlencode({"run": run_id, **parameters})

    first, last = known.first or 0, known.last or 0
    return render(
        "navigation.html",
        run_id=run_id,
        step=step,
        known=known,
        previous=to(step=step - 1) if step is not None and step > first else None,
        following=to(step=step + 1) if step is not None and step < last else None,
        more=to(step=step, after=found.next) if found.next else None,
        all_groups=None if whole_step or step is None else to(step=step),
    )


def listed(rows: list[GroupRow]) -> str:
    """The groups as cards."""
    return render("groups.html", groups=rows, nothing="No completions here yet: a run writes its first after one step.")
