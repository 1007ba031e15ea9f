"""Which parameters are trained: all, some parts of the model, or low-rank adapters beside them."""

from typing import Literal

from pydantic import Field, model_validator

from training.config.base import Section

Part = Literal["language", "vision", "projector"]


class ParametersConfig(Section):
    """What is trained: the weights themselves (full), or adapters on weights that stay as they are (lora)."""

    method: Literal["full", "lora"] = Field(
        default="full",
        description="full trains the weights; lora trains low-rank adapters (arXiv 2106.09685) beside frozen weights.",
    )
    freeze: tuple[Part, ...] = Field(
        default=(), max_length=3, description="Parts that full training leaves as they are; none trains everything."
    )
    lora_targets: tuple[Part, ...] = Field(
        default=("language",), min_length=1, max_length=3, description="Parts whose linear layers get adapters."
    )
    lora_rank: int = Field(default=16, ge=1, le=4096, description="Rank r of the adapters.")
    lora_alpha: float = Field(
        default=32.0, gt=0, le=65_536, description="Adapters are scaled by lora_alpha over lora_rank."
    )
    lora_dropout: float = Field(default=0.0, ge=0, lt=1, description="Dropout before the adapters, seeded by the step.")
    quantization: Literal["none", "8bit", "4bit"] = Field(
        default="none",
        description="Frozen weights of the language part in 8 or 4 bits (QLoRA, arXiv 2305.14314); needs method lora, "
        "a CUDA device and bitsandbytes.",
    )

    @model_validator(mode="after")
    def _trains_something(self) -> "ParametersConfig":
        for name in ("freeze", "lora_targets"):
            parts = getattr(self, name)
            if len(set(parts)) < len(parts):
                raise ValueError(f"{name} names a part twice, got {', '.join(parts)}; name each part once")
        if len(self.freeze) == 3:
            raise ValueError(
                "freeze names language, vision and projector, so nothing would be trained; leave out at least one part"
            )
        if self.method == "lora" and self.freeze:
            raise ValueError(
                f"freeze = {', '.join(self.freeze)} is for method full, got method lora, which trains adapters alone; "
                "leave freeze empty and choose lora_targets"
            )
        if self.method == "full" and self.quantization != "none":
            raise ValueError(
                f"quantization = {self.quantization} keeps weights that cannot be trained, got method full; "
                "use method lora, or quantization none"
            )
        return self
