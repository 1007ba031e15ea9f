"""The page that launches a run: form, TOML, check; all of it derived from the configuration's own fields."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from app.runs import Refused, Services
from app.store.queries.runs import get_run
from app.ui import query
from app.ui.form import (
    FormField,
    component,
    from_config,
    reward_names,
    section_fields,
    sections,
    to_config,
)
from app.ui.templates import render
from training.config import ALGORITHM_CONFIGS, RunConfig, dump_toml, load_toml
from training.errors import ConfigError
from training.preflight import Finding
from training.presets import load_preset, preset_names


@dataclass(slots=True)
class Form:
    """The components of the form in the order in which handlers get and set them."""

    algorithm: Any = None
    rewards: Any = None
    weights: dict[str, Any] = field(default_factory=dict)
    tags: Any = None
    fields: list[tuple[FormField, Any, str]] = field(default_factory=list)
    """Field, component, and the algorithm that it belongs to, or an empty text."""

    def components(self) -> list[Any]:
        own = [component for _, component, _ in self.fields]
        return [self.algorithm, self.rewards, *self.weights.values(), self.tags, *own]

    def read(self, values: Sequence[Any]) -> RunConfig:
        """Raises ConfigError that names each field."""
        algorithm, chosen, *rest = values
        weights = dict(zip(self.weights, rest, strict=False))
        tags, *own = rest[len(self.weights) :]
        given = {
            item.path: value for (item, _, of), value in zip(self.fields, own, strict=True) if of in ("", algorithm)
        }
        return to_config(given, algorithm, {name: weights[name] for name in chosen}, tags or "")

    def show(self, config: RunConfig) -> list[Any]:
        """Values of all components for a configuration; options of rewards stay with the TOML."""
        weights = {reward.name: reward.weight for reward in config.rewards}
        own = [from_config(config, [item], of or config.algorithm.name)[0] for item, _, of in self.fields]
        shown = [weights.get(name, 1.0) for name in self.weights]
        return [config.algorithm.name, list(weights), *shown, ", ".join(config.tags), *own]


def launch_page(page: gr.Blocks, services: Services) -> None:
    gr.Markdown("# Launch a run")
    with gr.Row(equal_height=True):
        preset = gr.Dropdown(
            preset_names(), value=preset_names()[0], label="preset", info="Fills the form below.", elem_id="preset"
        )
        check = gr.Button("Check", elem_id="check")
        launch = gr.Button("Launch", variant="primary", elem_id="launch")
    result = gr.HTML(elem_id="launch-result", padding=False)
    form = _build_form()
    with gr.Accordion("As TOML: the same run for the command line and REST", open=False):
        toml = gr.Code(language=None, label="TOML", interactive=True, elem_id="toml", lines=20)
        with gr.Row():
            write = gr.Button("Write the form as TOML")
            read = gr.Button("Read the TOML into the form")
    _connect(page, services, form, preset, result, toml, (check, launch, write, read))


def _build_form() -> Form:
    form = Form()
    with gr.Group():
        form.rewards = gr.CheckboxGroup(
            reward_names(), value=["accuracy"], label="rewards", info="Functions that score each completion.",
            elem_id="field-rewards",
        )  # fmt: skip
        with gr.Row():
            for name in reward_names():
                form.weights[name] = gr.Number(
                    1.0, label=f"weight of {name}", min_width=120, visible=name == "accuracy"
                )
    form.rewards.change(
        lambda chosen: [gr.update(visible=name in chosen) for name in form.weights],
        form.rewards,
        list(form.weights.values()),
        show_progress="hidden",
        api_visibility="private",
    )
    for path, title, model in sections():
        is_open = path in ("", "model", "data", "generation", "optimization")
        with gr.Accordion(title, open=is_open), gr.Row(elem_classes="fields"):
            for item in section_fields(path, model):
                form.fields.append((item, component(item), ""))
            if path == "":
                form.tags = gr.Textbox(label="tags", info="Words to find the run by, separated by commas.")
    shown, *_ = ALGORITHM_CONFIGS
    form.algorithm = gr.Dropdown(list(ALGORITHM_CONFIGS), value=shown, label="algorithm", elem_id="field-algorithm")
    boxes = {}
    for name, model in ALGORITHM_CONFIGS.items():
        with gr.Accordion(f"Options of {name}", visible=name == shown) as boxes[name], gr.Row(elem_classes="fields"):
            for item in section_fields("algorithm", model):
                form.fields.append((item, component(item), name))
    form.algorithm.change(
        lambda chosen: [gr.update(visible=name == chosen) for name in boxes],
        form.algorithm,
        list(boxes.values()),
        show_progress="hidden",
        api_visibility="private",
    )
    return form


def _connect(
    page: gr.Blocks, services: Services, form: Form, preset: Any, result: Any, toml: Any, buttons: tuple[Any, ...]
) -> None:
    check, launch, write, read = buttons

    def first(request: gr.Request) -> list[Any]:
        """The form of the run that the link names, else of the first preset."""
        run_id = query.integer(request, "from")
        with services.store.read() as session:
            run = None if run_id is None else get_run(session, run_id)
        return form.show(load_preset(preset_names()[0]) if run is None else run.config)

    def checked(*values: Any) -> str:
        try:
            return found(services.runs.check(form.read(values)))
        except ConfigError as error:
            return found(refusals(error))

    def launched(*values: Any) -> str:
        try:
            run_id = services.runs.launch(form.read(values), created_by="dashboard")
        except ConfigError as error:
            return found(refusals(error))
        except Refused as error:
            return found(error.findings)
        return render("findings.html", findings=[], ok="", run_id=run_id)

    def written(*values: Any) -> tuple[Any, str]:
        try:
            return dump_toml(form.read(values)), ""
        except ConfigError as error:
            return gr.update(), found(refusals(error))

    def taken(text: str) -> list[Any]:
        try:
            return [*form.show(load_toml(text)), ""]
        except ConfigError as error:
            return [*[gr.update()] * len(form.components()), found(refusals(error))]

    quiet: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
    page.load(first, outputs=form.components(), **quiet)
    preset.input(lambda name: form.show(load_preset(name)), preset, form.components(), **quiet)
    check.click(checked, form.components(), result, api_visibility="private")
    launch.click(launched, form.components(), result, api_visibility="private")
    write.click(written, form.components(), [toml, result], **quiet)
    read.click(taken, toml, [*form.components(), result], **quiet)


def found(findings: Sequence[Finding]) -> str:
    """Findings as a list."""
    return render("findings.html", findings=findings, ok="This run can start.", run_id=None)


def refusals(error: ConfigError) -> list[Finding]:
    """A refusal of the configuration itself, one finding per field."""
    parts = [part.partition(": ") for part in str(error).split("; ")]
    return [Finding("error", field, message) for field, _, message in parts]
