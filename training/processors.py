"""Loading processors with or without torchvision.

Qwen's and SmolVLM's stock processors insist on a video processor, which needs torchvision.  ProcessorMixin derives its
parts from the signature of `__init__`: a subclass without `video_processor` loads and works with PIL alone.  It keeps
the stock class's name, so that what it saves names the stock class.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import transformers
from transformers import AutoProcessor
from transformers.processing_utils import ProcessorMixin
from transformers.utils.import_utils import is_torchvision_available

VIDEO_PROCESSORS = {
    "Qwen2VLProcessor": "Qwen2VLVideoProcessor",
    "Qwen2_5_VLProcessor": "Qwen2VLVideoProcessor",
    "Qwen3VLProcessor": "Qwen3VLVideoProcessor",
    "SmolVLMProcessor": "SmolVLMVideoProcessor",
}
"""Stock processors that cannot be opened without a video processor's configuration beside them."""


def load_processor(path: str, *, revision: str | None = None) -> Any:
    """The processor of a model directory or hub id, image-only where torchvision is missing."""
    if not is_torchvision_available():
        config, _ = ProcessorMixin.get_processor_dict(path, revision=revision)
        name = config.get("processor_class", "")
        if name in VIDEO_PROCESSORS:
            return image_only(getattr(transformers, name)).from_pretrained(path, revision=revision)
    return AutoProcessor.from_pretrained(path, revision=revision)


def image_only(stock: type) -> Any:
    """A subclass of a stock Qwen-VL or SmolVLM processor that has no video part."""
    return _smolvlm_image_only(stock) if stock.__name__ == "SmolVLMProcessor" else _qwen_image_only(stock)


def save_processor(processor: Any, path: Path) -> None:
    """save_pretrained, and the video processor's file without which the stock class (so vLLM) opens no folder."""
    processor.save_pretrained(path)
    video_class = VIDEO_PROCESSORS.get(type(processor).__name__)
    target = path / "video_preprocessor_config.json"
    if video_class is None or target.exists():
        return
    image_processor = processor.image_processor
    config: dict[str, Any] = {"video_processor_type": video_class, "processor_class": type(processor).__name__}
    for key in ("patch_size", "temporal_patch_size", "merge_size", "image_mean", "image_std"):
        if getattr(image_processor, key, None) is not None:
            config[key] = getattr(image_processor, key)
    config["size"] = {key: value for key, value in dict(image_processor.size).items() if value is not None}
    if video_class == "SmolVLMVideoProcessor":
        edge = {"longest_edge": image_processor.max_image_size["longest_edge"]}
        sampling = {"fps": 1, "max_frames": 2, "video_size": config["size"]}
        config.update(max_image_size=edge, num_frames=2, fps=1, video_sampling=sampling)
    target.write_text(json.dumps(config, indent=1))


def _qwen_image_only(stock: type) -> Any:
    class ImageOnly(stock):
        def __init__(self, image_processor: Any = None, tokenizer: Any = None, chat_template: Any = None) -> None:
            to_id = tokenizer.convert_tokens_to_ids
            for kind in ("image", "video"):
                token = getattr(tokenizer, f"{kind}_token", None) or f"<|{kind}_pad|>"
                setattr(self, f"{kind}_token", token)
                setattr(self, f"{kind}_token_id", to_id(token))
            for kind in ("start", "end"):
                setattr(self, f"vision_{kind}_token", f"<|vision_{kind}|>")
                setattr(self, f"vision_{kind}_token_id", to_id(f"<|vision_{kind}|>"))
            ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)

    return _named_as(ImageOnly, stock)


def _smolvlm_image_only(stock: type) -> Any:
    class ImageOnly(stock):
        # apply_chat_template reads these even for a prompt without a video; a class attribute is not saved
        video_processor = SimpleNamespace(num_frames=1, fps=1, video_size=None, size=None, do_sample_frames=False)

        def __init__(
            self,
            image_processor: Any = None,
            tokenizer: Any = None,
            image_seq_len: int = 169,
            chat_template: Any = None,
        ) -> None:
            self.fake_image_token = getattr(tokenizer, "fake_image_token", "<fake_token_around_image>")
            self.image_token = getattr(tokenizer, "image_token", "<image>")
            self.image_token_id = tokenizer.convert_tokens_to_ids(self.image_token)
            self.end_of_utterance_token = getattr(tokenizer, "end_of_utterance_token", "<end_of_utterance>")
            self.global_image_token = getattr(tokenizer, "global_image_token", "<global-img>")
            self.video_token = getattr(tokenizer, "video_token", "<video>")
            self.image_seq_len = image_seq_len
            ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)

    return _named_as(ImageOnly, stock)


def _named_as(cls: type, stock: type) -> type:
    cls.__name__ = cls.__qualname__ = stock.__name__
    return cls
