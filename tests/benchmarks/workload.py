"""What both trainers are given: the same small Qwen2.5-VL, images, prompts, lengths, seed and optimizer."""

import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import transformers as tr
from PIL import Image
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from training.demo.smolvlm import rescale
from training.demo.tokenizer import make_tokenizer
from training.processors import image_only

QUESTIONS = ["what color is the circle?", "what shape is present?", "is there a red shape?", "how many are there?"]
PATCH, MERGE = 14, 2


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the benchmark: `images` of side x side pixels a prompt, G completions of up to `length` tokens."""

    name: str
    side: int
    images: int
    length: int
    num_generations: int
    algorithm: str
    prompts: int = 2

    @property
    def image_tokens(self) -> int:
        return self.images * (self.side // (PATCH * MERGE)) ** 2


@cache
def processor_and_config() -> tuple[Any, tr.Qwen2_5_VLConfig]:
    """8 million parameters: hidden size 256, 6 language layers, 4 vision layers, a vocabulary of about 500 tokens."""
    pad = "<|image_pad|>"
    specials = ["<|vision_start|>", "<|vision_end|>", pad, "<|video_pad|>"]
    tokenizer = make_tokenizer(QUESTIONS, image=f"<|vision_start|>{pad}<|vision_end|>", specials=specials)
    to_id = tokenizer.convert_tokens_to_ids
    text = {
        "vocab_size": len(tokenizer), "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 6,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 4096, "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "tie_word_embeddings": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [8, 12, 12]},
    }  # fmt: skip
    vision = {
        "depth": 4, "hidden_size": 256, "num_heads": 4, "intermediate_size": 688, "out_hidden_size": 256,
        "patch_size": PATCH, "spatial_merge_size": MERGE, "temporal_patch_size": 2, "window_size": 112,
        "fullatt_block_indexes": [3],
    }  # fmt: skip
    config = tr.Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=to_id(pad),
        video_token_id=to_id("<|video_pad|>"),
        vision_start_token_id=to_id("<|vision_start|>"),
        vision_end_token_id=to_id("<|vision_end|>"),
        tie_word_embeddings=True,
    )
    images = Qwen2VLImageProcessorPil(
        patch_size=PATCH,
        temporal_patch_size=2,
        merge_size=MERGE,
        size={"shortest_edge": 28**2, "longest_edge": 1 << 24},
    )
    return image_only(tr.Qwen2_5_VLProcessor)(images, tokenizer, chat_template=tokenizer.chat_template), config


def build_model() -> tr.Qwen2_5_VLForConditionalGeneration:
    """A new model, always with the same weights."""
    processor, config = processor_and_config()
    torch.manual_seed(0)
    model = tr.Qwen2_5_VLForConditionalGeneration(config)
    rescale(model, seed=0)
    model.generation_config.eos_token_id = processor.tokenizer.eos_token_id
    model.generation_config.pad_token_id = processor.tokenizer.pad_token_id
    return model


def picture(setting: Setting, row: int, number: int) -> Image.Image:
    noise = Image.frombytes("RGB", (8, 8), random.Random(f"{row}/{number}").randbytes(192))
    return noise.resize((setting.side, setting.side))


def reward(completions: list[str]) -> list[float]:
    """Half of a random model's completions, by the parity of their length."""
    return [float(len(text) % 2) for text in completions]
