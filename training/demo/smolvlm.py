"""A SmolVLM of 0.8 million parameters with random weights, built from its configuration alone."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel, SmolVLMConfig, SmolVLMForConditionalGeneration, SmolVLMProcessor
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

from training.demo.tokenizer import make_tokenizer
from training.processors import image_only

SIDE, PATCH, SCALE = 64, 16, 2
"""Image side and vision patch in pixels; SCALE x SCALE patches become one token of the language model."""

_GRID = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
_NAMED = {
    "image_token": "<image>",
    "fake_image_token": "<fake_token_around_image>",
    "global_image_token": "<global-img>",
    "end_of_utterance_token": "<end_of_utterance>",
}


def build_smolvlm(corpus: Iterable[str], *, seed: int) -> tuple[PreTrainedModel, Any]:
    """Model and processor: hidden size 96, 3 + 3 layers, 3 heads of 32 (a width that vLLM's CPU kernels take)."""
    tokenizer = make_tokenizer(corpus, image="<image>", specials=[*_NAMED.values(), *_GRID], named=_NAMED)
    torch.manual_seed(seed)
    model = SmolVLMForConditionalGeneration(_config(tokenizer))
    rescale(model, seed=seed)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    images = SmolVLMImageProcessorPil(
        size={"longest_edge": SIDE}, max_image_size={"longest_edge": SIDE}, do_image_splitting=False
    )
    processor = image_only(SmolVLMProcessor)(
        images, tokenizer, image_seq_len=(SIDE // PATCH // SCALE) ** 2, chat_template=tokenizer.chat_template
    )
    return model, processor


def _config(tokenizer: Any) -> SmolVLMConfig:
    text = {
        "model_type": "llama",
        "vocab_size": len(tokenizer),
        "hidden_size": 96,
        "intermediate_size": 288,
        "num_hidden_layers": 3,
        "num_attention_heads": 3,
        "num_key_value_heads": 1,
        "max_position_embeddings": 2048,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": True,  # transformers reads it at the top, vLLM here
    }
    vision = {
        "hidden_size": 96,
        "intermediate_size": 288,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "image_size": SIDE,
        "patch_size": PATCH,
    }
    return SmolVLMConfig(
        text_config=text,
        vision_config=vision,
        scale_factor=SCALE,
        image_token_id=tokenizer.image_token_id,
        tie_word_embeddings=True,
        **{"pad_token_id": tokenizer.pad_token_id},
    )


def rescale(model: PreTrainedModel, *, seed: int) -> None:
    """Weights of standard deviation 1/sqrt(fan-in): the stock 0.02 is far too small for layers about 100 wide."""
    generator = torch.Generator().manual_seed(seed)
    vocabulary = model.config.get_text_config().vocab_size
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d | nn.Conv3d) and module.weight.shape[0] != vocabulary:
            with torch.no_grad():
                noise = torch.randn(module.weight.shape, generator=generator)
                module.weight.copy_(noise * module.weight[0].numel() ** -0.5)
