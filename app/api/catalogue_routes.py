"""Routes that list what a run can be made of: rewards, presets."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import Field

from app.api.documents import Document
from app.api.errors import ApiError
from training.config import RunConfig, dump_toml
from training.presets import load_preset, preset_names
from training.rewards import catalogue

router = APIRouter(tags=["catalogue"])

PresetName = Annotated[str, Path(description="Name of the preset.", examples=["demo-color-grpo"])]


class RewardInfoDocument(Document):
    """A reward function that a run may name."""

    name: str = Field(examples=["accuracy"])
    summary: str
    range: tuple[float, float] = Field(description="Lowest and highest value.", examples=[(0.0, 1.0)])
    options: dict[str, Any] = Field(description="JSON schema of its options.")


class PresetDocument(Document):
    """A ready configuration."""

    name: str = Field(examples=["demo-color-grpo"])
    config: RunConfig
    toml: str = Field(description="The same as TOML.")


@router.get("/rewards", summary="Reward functions")
def list_rewards() -> list[RewardInfoDocument]:
    """Every function of the catalogue with the schema of its options."""
    return [
        RewardInfoDocument(
            name=info.name, summary=info.summary, range=info.range, options=info.options.model_json_schema()
        )
        for info in catalogue()
    ]


@router.get("/presets", summary="Presets")
def list_presets() -> list[PresetDocument]:
    """Configurations that run as they are."""
    return [_preset(name) for name in preset_names()]


@router.get("/presets/{name}", summary="Show a preset")
def show_preset(name: PresetName) -> PresetDocument:
    """One configuration, as JSON and as TOML."""
    if name not in preset_names():
        raise ApiError(404, "not_found", f"there is no such preset; there are {', '.join(preset_names())}")
    return _preset(name)


def _preset(name: str) -> PresetDocument:
    config = load_preset(name)
    return PresetDocument(name=name, config=config, toml=dump_toml(config))
