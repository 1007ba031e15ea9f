"""Tiny random VLMs of families that have no row in training/vision.py."""

from typing import Any

import torch
import transformers as tr
from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil
from transformers.models.idefics2.image_processing_pil_idefics2 import Idefics2ImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

from tests.tiny_vlms import CORPUS, HEADS, HIDDEN, PATCH, SIDE, scaled_policy, text_sizes, vision_sizes
from training.demo.tokenizer import make_tokenizer
from training.policy import Policy


def other_policy(family: str) -> Policy:
    torch.manual_seed(0)
    return scaled_policy(*_BUILDERS[family]())


def _aya_vision() -> tuple[Any, Any]:
    """Tiles of InternVL's kind between tokens of its own; logits are scaled from transformers 5.25 on."""
    tiles = [f"TILE_{number}" for number in range(1, 5)]
    names = ["<|START_OF_IMG|>", "<|END_OF_IMG|>", "<|IMG_PATCH|>", "TILE_GLOBAL", *tiles, "<image>"]
    tokenizer = make_tokenizer(CORPUS, image="<image>", specials=names, named={"image_token": "<image>"})
    config = tr.AyaVisionConfig(
        text_config={"model_type": "cohere2", "logit_scale": 0.5, **text_sizes(tokenizer)},
        vision_config={"model_type": "siglip_vision_model", **vision_sizes(vision_use_head=False)},
        image_token_index=tokenizer.convert_tokens_to_ids("<|IMG_PATCH|>"),
        downsample_factor=2,
    )
    images = GotOcr2ImageProcessorPil(size={"height": SIDE, "width": SIDE}, crop_to_patches=True, max_patches=4)
    processor = tr.AyaVisionProcessor(
        images, tokenizer, patch_size=PATCH, img_size=SIDE, downsample_factor=2, chat_template=tokenizer.chat_template
    )
    return tr.AyaVisionForConditionalGeneration(config), processor


def _idefics2() -> tuple[Any, Any]:
    """Images of a prompt padded to its largest, one row a prompt."""
    named = {
        "image_token": "<image>",
        "image_boundary_token": "<fake_token_around_image>",
        "end_of_utterance_token": "<end_of_utterance>",
    }
    tokenizer = make_tokenizer(CORPUS, image="<image>", specials=list(named.values()), named=named)
    perceiver = {
        "hidden_size": HIDDEN,
        "resampler_n_latents": 4,
        "resampler_depth": 1,
        "resampler_n_heads": HEADS,
        "resampler_head_dim": HIDDEN // HEADS,
        "num_key_value_heads": 1,
    }
    config = tr.Idefics2Config(
        text_config={"model_type": "mistral", **text_sizes(tokenizer)},
        vision_config=vision_sizes(),
        perceiver_config=perceiver,
        image_token_id=tokenizer.image_token_id,
    )
    images = Idefics2ImageProcessorPil(size={"longest_edge": SIDE, "shortest_edge": PATCH}, do_image_splitting=False)
    processor = tr.Idefics2Processor(images, tokenizer, image_seq_len=4, chat_template=tokenizer.chat_template)
    return tr.Idefics2ForConditionalGeneration(config), processor


def _paligemma() -> tuple[Any, Any]:
    """Its processor takes no prompt without an image."""
    tokenizer = make_tokenizer(CORPUS, image="<image>", specials=["<image>"], named={"image_token": "<image>"})
    tokenizer.bos_token = "<|im_start|>"
    config = tr.PaliGemmaConfig(
        text_config={"model_type": "gemma", "head_dim": HIDDEN // HEADS, **text_sizes(tokenizer)},
        vision_config={"model_type": "siglip_vision_model", **vision_sizes(vision_use_head=False)},
        projection_dim=HIDDEN,
        image_token_index=tokenizer.image_token_id,
    )
    images = SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    images.image_seq_length = (SIDE // PATCH) ** 2
    processor = tr.PaliGemmaProcessor(images, tokenizer, chat_template=tokenizer.chat_template)
    return tr.PaliGemmaForConditionalGeneration(config), processor


_BUILDERS = {"aya_vision": _aya_vision, "idefics2": _idefics2, "paligemma": _paligemma}
