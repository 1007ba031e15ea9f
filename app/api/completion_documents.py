"""Groups, completions, rewards and the prompts they belong to as REST shows them."""

from typing import Any

from pydantic import Field, JsonValue, computed_field

from app.api.documents import Document, Id


class ImageDocument(Document):
    """An image of a prompt; the bytes lie behind the URLs."""

    sha256: str = Field(examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"])
    width: int
    height: int
    position: int = Field(description="Place among the images of the prompt, from 0.")

    @computed_field
    @property
    def urls(self) -> dict[str, str]:
        """Where to get it: thumb (192 px), md (512 px) and full (the original bytes)."""
        return {size: f"/media/{self.sha256}/{size}" for size in ("thumb", "md", "full")}


class SampleDocument(Document):
    """A prompt with its images and the other columns of its row."""

    id: Id
    key: str = Field(description="Content hash: the same prompt has the same key in every run.")
    row: int
    messages: list[dict[str, Any]]
    columns: dict[str, JsonValue]
    images: list[ImageDocument]


class RewardDocument(Document):
    """What one reward function said of one completion."""

    name: str = Field(examples=["accuracy"])
    value: float | None = Field(description="null when unscored or failed.")
    error: str | None = Field(description="Why there is no value, when the function failed.")
    parsed: str | None = Field(description="What the function read from the completion.")


class CompletionDocument(Document):
    """One sampled completion."""

    id: Id
    group_id: Id
    run_id: Id
    step: int
    index: int = Field(description="Place in its group, from 0.")
    text: str
    truncated: bool = Field(description="The text was too long to be stored whole.")
    num_tokens: int
    finish_reason: str = Field(examples=["stop"])
    reward: float | None = Field(description="Weighted sum of the scored rewards.")
    advantage: float | None
    rewards: list[RewardDocument]


class GroupDocument(Document):
    """All completions of one prompt at one step."""

    id: Id
    run_id: Id
    step: int
    sample: SampleDocument
    completions: list[CompletionDocument]
    reward_mean: float | None
    reward_std: float | None
    zero_signal: bool = Field(description="All rewards are alike, so nothing is learned from this group.")
