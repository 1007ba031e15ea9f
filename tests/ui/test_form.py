"""The form and the configuration say the same."""

import gradio as gr
import pytest

from app.ui.form import section_fields, sections, to_config
from app.ui.launch import _build_form, refusals
from training.config import ALGORITHM_CONFIGS, RunConfig
from training.errors import ConfigError
from training.presets import load_preset, preset_names
from training.rewards import catalogue


@pytest.fixture(scope="module")
def form():
    with gr.Blocks():
        return _build_form()


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_goes_through_the_form_unchanged(form, name):
    config = load_preset(name)
    assert form.read(form.show(config)) == config


def test_every_changed_field_goes_through_the_form(form):
    config = RunConfig.model_validate(
        {
            "name": "other",
            "tags": ["a", "b"],
            "seed": 7,
            "data": {"image_column": "", "shuffle": False, "limit": 40, "system_prompt": "Be brief."},
            "rewards": [{"name": "exact_text", "weight": 0.5}, {"name": "format_answer", "weight": 2.0}],
            "algorithm": {"name": "rloo", "reward_clip_range": [-1.0, 1.5], "normalize_advantages": True},
            "optimization": {"learning_rate": 3e-6, "micro_batch_tokens": 4096},
            "parameters": {"freeze": ["vision", "projector"], "lora_rank": 4},
            "evaluation": {"split": "test", "every_steps": 10},
            "resources": {"threads": 2},
            "tracking": {"trackio": True},
        }
    )
    assert form.read(form.show(config)) == config


def test_every_field_of_the_configuration_is_in_the_form_with_its_help(form):
    shown = {(item.path, of): component for item, component, of in form.fields}
    models = [*((path, model, "") for path, _, model in sections())]
    models += [("algorithm", model, name) for name, model in ALGORITHM_CONFIGS.items()]
    for path, model, of in models:
        for item in section_fields(path, model):
            assert shown[item.path, of].info == item.info.description
            assert item.info.description
    assert list(form.weights) == [info.name for info in catalogue()]


def test_bad_values_are_refused_by_the_name_of_their_field(form):
    with pytest.raises(ConfigError) as error:
        to_config({"generation.num_generations": 1, "optimization.learning_rate": -1}, "grpo", {"accuracy": 1.0}, "")
    fields = {finding.field for finding in refusals(error.value)}
    assert fields == {"generation.num_generations", "optimization.learning_rate"}
