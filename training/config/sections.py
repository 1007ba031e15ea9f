"""The sections of a run's configuration, one class each: name, type, default, bounds and help of every field."""

from typing import Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from training.config.base import Section


class ModelConfig(Section):
    """Which model is trained."""

    path: str = Field(
        default="demo-color",
        min_length=1,
        max_length=500,
        description="A local model directory, a hub id (owner/name), or a built-in demo model: demo-color, demo-tags.",
    )
    revision: str | None = Field(default=None, max_length=200, description="Branch, tag or commit of a hub id.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        default="auto", description="Number format of the weights; auto is float32 on CPU and bfloat16 on CUDA."
    )
    attention: Literal["sdpa", "eager", "flash_attention_2"] = Field(
        default="sdpa", description="Attention implementation of transformers."
    )


class DataConfig(Section):
    """Where prompts, images and gold answers come from, and how a row becomes a prompt."""

    source: str = Field(
        default="easy-vqa",
        min_length=1,
        max_length=500,
        description="The built-in dataset easy-vqa, or a local JSONL, JSON, CSV or Parquet file.",
    )
    subset: str | None = Field(
        default=None, max_length=200, description="Part of the dataset; easy-vqa has color, shape and yesno."
    )
    split: str = Field(default="train", min_length=1, max_length=100, description="Split that is trained on.")
    prompt: str = Field(
        default="{question}",
        min_length=1,
        max_length=20_000,
        description="The user's message; {column} is replaced by that column of the row.",
    )
    system_prompt: str | None = Field(
        default=None, max_length=20_000, description="A system message before the user's."
    )
    messages_column: str = Field(
        default="",
        max_length=200,
        description="Column that holds whole chat messages (role and content), in place of the prompt above; an "
        "assistant message at the end is continued.",
    )
    image_column: str = Field(
        default="image",
        max_length=200,
        description="Column that holds the image or the list of images (`images` is found too); empty for text alone.",
    )
    min_pixels: int | None = Field(
        default=None,
        ge=1,
        le=40_000_000,
        description="Smaller images are enlarged to this area before the model's own scaling.",
    )
    max_pixels: int | None = Field(
        default=None,
        ge=1,
        le=40_000_000,
        description="Larger images are shrunk to this area before the model's own scaling.",
    )
    max_prompt_length: int | None = Field(
        default=None,
        ge=1,
        le=1_048_576,
        description="Longest prompt in tokens, images included; a longer one is refused by its row, never cut.",
    )
    answer_column: str = Field(
        default="answer",
        min_length=1,
        max_length=200,
        description="Column with the gold answer; rewards get it as `answer`.",
    )
    limit: int | None = Field(default=None, ge=1, description="Use only the first so many rows.")
    shuffle: bool = Field(default=True, description="Shuffle every epoch, seeded by the run's seed.")

    @model_validator(mode="after")
    def _bounds_are_ordered(self) -> "DataConfig":
        least, most = self.min_pixels, self.max_pixels
        if least is not None and most is not None and least > most:
            raise ValueError(f"expected min_pixels <= max_pixels, got {least} and {most}; swap them")
        return self

    @model_validator(mode="after")
    def _one_source_of_prompts(self) -> "DataConfig":
        if self.messages_column and self.prompt != DataConfig.model_fields["prompt"].default:
            raise ValueError(
                f"messages_column = {self.messages_column!r} takes whole prompts from the rows and prompt = "
                f"{self.prompt!r:.60} would make them; leave one of them out"
            )
        return self

    cycle: bool = Field(
        default=False,
        description="Take a dataset with fewer rows than a step has prompts several times within the step; otherwise "
        "it is refused.",
    )


class RewardConfig(Section):
    """One reward function of the run."""

    name: str = Field(min_length=1, max_length=100, description="Name in the reward catalogue.")
    weight: float = Field(default=1.0, ge=-1e6, le=1e6, description="Its weight in the total reward.")
    options: dict[str, JsonValue] = Field(default={}, description="The function's own options.")


class GenerationConfig(Section):
    """How completions are sampled."""

    num_generations: int = Field(default=8, ge=2, le=1024, description="Completions per prompt: the group size G.")
    max_completion_length: int = Field(default=256, ge=1, le=131_072, description="Longest completion in tokens.")
    temperature: float = Field(default=1.0, gt=0, le=100, description="Sampling temperature; the loss uses the same.")
    at_once: int | None = Field(
        default=None,
        ge=1,
        description="Completions that are sampled at once; empty means all of a step. Halved when memory runs out.",
    )


class OptimizationConfig(Section):
    """Length of the run, batch and optimizer (AdamW)."""

    max_steps: int = Field(default=100, ge=1, le=10_000_000, description="Generated batches of the run.")
    epochs: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="Passes over the data; when given, they decide the length of the run and not max_steps. The last "
        "step is filled from the next pass.",
    )
    prompts_per_step: int = Field(
        default=8, ge=1, le=65_536, description="Distinct prompts per step; each makes one group."
    )
    micro_batch_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Padded tokens per forward and backward pass: prompts times the longest one plus completions times "
        "the longest one; empty means all of a step at once. Halved for the rest of the run when memory runs out.",
    )
    activation_checkpointing: bool = Field(
        default=False, description="Compute activations of layers again in the backward pass: less memory, more time."
    )
    learning_rate: float = Field(default=1e-6, gt=0, le=1, description="Peak learning rate.")
    lr_scheduler: Literal["constant", "linear", "cosine"] = Field(
        default="linear", description="Shape after the warm-up."
    )
    final_lr_ratio: float = Field(default=0.0, ge=0, le=1, description="Learning rate at the end over the peak.")
    warmup_steps: int = Field(default=0, ge=0, description="Steps of linear warm-up.")
    weight_decay: float = Field(default=0.0, ge=0, le=1, description="AdamW's decoupled weight decay.")
    adam_beta1: float = Field(default=0.9, ge=0, lt=1, description="AdamW's beta 1.")
    adam_beta2: float = Field(default=0.999, ge=0, lt=1, description="AdamW's beta 2.")
    adam_epsilon: float = Field(default=1e-8, gt=0, le=1, description="AdamW's epsilon.")
    max_grad_norm: float = Field(default=1.0, gt=0, description="Gradients are scaled down to this global norm.")


class EvaluationConfig(Section):
    """Greedy evaluation on rows that training never sees."""

    split: str | None = Field(default=None, max_length=100, description="Held-out split; empty means no evaluation.")
    samples: int = Field(default=200, ge=1, le=1_000_000, description="Rows of it, chosen once by the run's seed.")
    every_steps: int | None = Field(
        default=None, ge=1, description="Also evaluate every so many steps, not only at both ends."
    )


class CheckpointConfig(Section):
    """What is kept to resume from."""

    save_steps: int = Field(
        default=100, ge=0, description="Write a checkpoint every so many steps; 0 writes none in between."
    )
    keep: int = Field(default=2, ge=1, le=1000, description="Newest checkpoints that are kept.")


class ResourcesConfig(Section):
    """What the run may use."""

    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="auto takes a GPU when there is one.")
    threads: int | None = Field(
        default=None, ge=1, le=1024, description="CPU threads of torch; empty leaves torch's choice."
    )


class TrackingConfig(Section):
    """Optional mirrors of the scalar metrics."""

    trackio: bool = Field(default=False, description="Mirror the metrics to a local trackio project.")
    trackio_project: str | None = Field(
        default=None, max_length=100, description="Its name; empty means the project of the run."
    )

    @field_validator("trackio_project")
    @classmethod
    def _plain_name(cls, value: str | None) -> str | None:
        if value is not None and not value.replace("-", "").replace("_", "").isalnum():
            raise ValueError(f"trackio_project takes letters, digits, - and _ only, got {value!r}")
        return value
