"""Tiny random VLMs of nine families with their processors, built from configurations alone: no hub, no torchvision."""

from typing import Any

import torch
import transformers as tr
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil
from transformers.models.llava_next.image_processing_pil_llava_next import LlavaNextImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

from training.demo.smolvlm import rescale
from training.demo.tokenizer import make_tokenizer
from training.policy import Policy, make_policy
from training.processors import image_only

CORPUS = ["what color is the circle?", "what shape is present?", "is there a red shape?", "how many shapes are there?"]
HIDDEN, LAYERS, HEADS, SIDE, PATCH = 64, 2, 2, 64, 16


def tiny_policy(family: str, *, seed: int = 0) -> Policy:
    """A policy with scaled-up random weights: near-uniform outputs of default weights would hide errors."""
    torch.manual_seed(seed)
    return scaled_policy(*_BUILDERS[family](), seed=seed)


def scaled_policy(model: Any, processor: Any, *, seed: int = 0) -> Policy:
    rescale(model, seed=seed)
    projector = getattr(model.model, "multi_modal_projector", None)
    weight = getattr(projector, "mm_input_projection_weight", None)
    if weight is not None:  # transformers starts it at zero: a random Gemma3 is blind until it is replaced
        torch.nn.init.normal_(weight, std=weight.shape[0] ** -0.5)
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(10)
    model.generation_config.eos_token_id = processor.tokenizer.eos_token_id
    return make_policy(model.eval(), processor)


def text_sizes(tokenizer: Any, **more: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN,
        "intermediate_size": HIDDEN * 2,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": 1,
        "max_position_embeddings": 2048,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": True,
        **more,
    }


def vision_sizes(**more: Any) -> dict[str, Any]:
    return {
        "hidden_size": HIDDEN,
        "intermediate_size": HIDDEN * 2,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "image_size": SIDE,
        "patch_size": PATCH,
        **more,
    }


def _qwen(family: str) -> tuple[Any, Any]:
    pad = "<|image_pad|>"
    specials = ["<|vision_start|>", "<|vision_end|>", pad, "<|video_pad|>"]
    tokenizer = make_tokenizer(CORPUS, image=f"<|vision_start|>{pad}<|vision_end|>", specials=specials)
    to_id = tokenizer.convert_tokens_to_ids
    half = HIDDEN // HEADS // 2
    section = [half - 2 * (half * 3 // 8), half * 3 // 8, half * 3 // 8]
    rope = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": section}
    vision = {
        "depth": LAYERS,
        "num_heads": HEADS,
        "patch_size": PATCH,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    }
    if family == "qwen2_vl":
        vision |= {"embed_dim": HIDDEN, "hidden_size": HIDDEN, "mlp_ratio": 2}
        names = (tr.Qwen2VLConfig, tr.Qwen2VLForConditionalGeneration, tr.Qwen2VLProcessor)
    else:
        vision |= {"hidden_size": HIDDEN, "intermediate_size": HIDDEN * 2, "out_hidden_size": HIDDEN}
        if family == "qwen2_5_vl":
            vision |= {"window_size": PATCH * 8, "fullatt_block_indexes": list(range(LAYERS))}
            names = (tr.Qwen2_5_VLConfig, tr.Qwen2_5_VLForConditionalGeneration, tr.Qwen2_5_VLProcessor)
        else:
            rope["mrope_interleaved"] = True
            vision |= {"num_position_embeddings": (SIDE // PATCH) ** 2, "deepstack_visual_indexes": [0]}
            names = (tr.Qwen3VLConfig, tr.Qwen3VLForConditionalGeneration, tr.Qwen3VLProcessor)
    more = {"head_dim": HIDDEN // HEADS} if family == "qwen3_vl" else {}
    config, model, processor = names
    tiny = model(
        config(
            text_config=text_sizes(tokenizer, rope_parameters=rope, **more),
            vision_config=vision,
            image_token_id=to_id(pad),
            video_token_id=to_id("<|video_pad|>"),
            vision_start_token_id=to_id("<|vision_start|>"),
            vision_end_token_id=to_id("<|vision_end|>"),
            tie_word_embeddings=True,
        )
    )
    images = Qwen2VLImageProcessorPil(
        patch_size=PATCH,
        temporal_patch_size=2,
        merge_size=2,
        size={"shortest_edge": (2 * PATCH) ** 2, "longest_edge": SIDE * SIDE},
    )
    return tiny, image_only(processor)(images, tokenizer, chat_template=tokenizer.chat_template)


def _idefics(family: str) -> tuple[Any, Any]:
    grid = [f"<row_{r}_col_{c}>" for r in range(1, 7) for c in range(1, 7)]
    named = {
        "image_token": "<image>",
        "fake_image_token": "<fake_token_around_image>",
        "global_image_token": "<global-img>",
        "end_of_utterance_token": "<end_of_utterance>",
    }
    tokenizer = make_tokenizer(CORPUS, image="<image>", specials=[*named.values(), *grid], named=named)
    smol = family == "smolvlm"
    config, model = (
        (tr.SmolVLMConfig, tr.SmolVLMForConditionalGeneration)
        if smol
        else (tr.Idefics3Config, tr.Idefics3ForConditionalGeneration)
    )
    tiny = model(
        config(
            text_config={"model_type": "llama", **text_sizes(tokenizer)},
            vision_config=vision_sizes(),
            scale_factor=2,
            image_token_id=tokenizer.image_token_id,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    make = SmolVLMImageProcessorPil if smol else Idefics3ImageProcessorPil
    edge = SIDE if smol else 2 * SIDE  # Idefics3 cuts each image into tiles here
    images = make(size={"longest_edge": edge}, max_image_size={"longest_edge": SIDE}, do_image_splitting=not smol)
    processor = image_only(tr.SmolVLMProcessor) if smol else tr.Idefics3Processor
    length = (SIDE // PATCH // 2) ** 2
    return tiny, processor(images, tokenizer, image_seq_len=length, chat_template=tokenizer.chat_template)


def _gemma3() -> tuple[Any, Any]:
    named = {"image_token": "<image_soft_token>", "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>"}
    tokenizer = make_tokenizer(CORPUS, image="<start_of_image>", specials=list(named.values()), named=named)
    head = HIDDEN // HEADS
    text = text_sizes(tokenizer, head_dim=head, query_pre_attn_scalar=head, sliding_window=512)
    tiny = tr.Gemma3ForConditionalGeneration(
        tr.Gemma3Config(
            text_config=text,
            vision_config=vision_sizes(vision_use_head=False),
            mm_tokens_per_image=4,
            boi_token_index=tokenizer.boi_token_id,
            eoi_token_index=tokenizer.eoi_token_id,
            image_token_index=tokenizer.image_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    half = [0.5] * 3
    images = Gemma3ImageProcessorPil(size={"height": SIDE, "width": SIDE}, image_mean=half, image_std=half)
    return tiny, tr.Gemma3Processor(images, tokenizer, chat_template=tokenizer.chat_template, image_seq_length=4)


def _llava(family: str) -> tuple[Any, Any]:
    tokenizer = make_tokenizer(CORPUS, image="<image>", specials=["<image>"], named={"image_token": "<image>"})
    common = {
        "text_config": {"model_type": "llama", **text_sizes(tokenizer)},
        "vision_config": {"model_type": "clip_vision_model", **vision_sizes(projection_dim=HIDDEN)},
        "image_token_index": tokenizer.image_token_id,
        "tie_word_embeddings": True,
        "vision_feature_layer": -1,
        "vision_feature_select_strategy": "default",
        "pad_token_id": tokenizer.pad_token_id,
    }
    parts = {
        "tokenizer": tokenizer,
        "patch_size": PATCH,
        "vision_feature_select_strategy": "default",
        "chat_template": tokenizer.chat_template,
        "num_additional_image_tokens": 1,
    }
    sizes = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    if family == "llava":
        tiny = tr.LlavaForConditionalGeneration(tr.LlavaConfig(image_seq_length=(SIDE // PATCH) ** 2, **common))
        return tiny, tr.LlavaProcessor(image_processor=LlavaImageProcessorPil(**sizes), **parts)
    pins = [[SIDE, SIDE], [SIDE, 2 * SIDE], [2 * SIDE, SIDE]]
    tiny = tr.LlavaNextForConditionalGeneration(tr.LlavaNextConfig(image_grid_pinpoints=pins, **common))
    images = LlavaNextImageProcessorPil(image_grid_pinpoints=pins, **sizes)
    return tiny, tr.LlavaNextProcessor(image_processor=images, **parts)


def _internvl() -> tuple[Any, Any]:
    named = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    tokenizer = make_tokenizer(CORPUS, image="<IMG_CONTEXT>", specials=list(named.values()), named=named)
    length = (SIDE // PATCH // 2) ** 2
    tiny = tr.InternVLForConditionalGeneration(
        tr.InternVLConfig(
            text_config={"model_type": "qwen2", **text_sizes(tokenizer)},
            vision_config=vision_sizes(image_size=[SIDE, SIDE], patch_size=[PATCH, PATCH]),
            image_token_id=tokenizer.context_image_token_id,
            image_seq_length=length,
        )
    )
    images = GotOcr2ImageProcessorPil(size={"height": SIDE, "width": SIDE}, crop_to_patches=True, max_patches=4)
    processor = image_only(tr.InternVLProcessor)
    return tiny, processor(images, tokenizer, image_seq_length=length, chat_template=tokenizer.chat_template)


_BUILDERS = {
    **{name: (lambda name=name: _qwen(name)) for name in ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")},
    **{name: (lambda name=name: _idefics(name)) for name in ("smolvlm", "idefics3")},
    "gemma3": _gemma3,
    "internvl": _internvl,
    **{name: (lambda name=name: _llava(name)) for name in ("llava", "llava_next")},
}
TINY_FAMILIES = tuple(_BUILDERS)
