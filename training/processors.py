"""Loading processors with or without torchvision.

Many stock processors insist on a video processor, which needs torchvision.  ProcessorMixin derives its parts from the
signature of `__init__`: a subclass without `video_processor` loads and works with PIL alone.  It keeps the stock
class's name, so that what it saves names the stock class.
"""

import inspect
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import transformers
from transformers import AutoProcessor
from transformers.processing_utils import ProcessorMixin
from transformers.utils.import_utils import is_torchvision_available

_VIDEO = "video_processor"
_OTHER_VIDEO_NAMES = {"Qwen2_5_VLProcessor": "Qwen2VLVideoProcessor"}


def load_processor(path: str, *, revision: str | None = None) -> Any:
    """The processor of a model directory or hub id, image-only where torchvision is missing."""
    if not is_torchvision_available():
        config, _ = ProcessorMixin.get_processor_dict(path, revision=revision)
        stock = getattr(transformers, config.get("processor_class", ""), None)
        if stock is not None and _takes_videos(stock):
            return image_only(stock).from_pretrained(path, revision=revision)
    return AutoProcessor.from_pretrained(path, revision=revision)


def image_only(stock: type) -> Any:
    """A subclass of a stock processor that has no video part."""
    cls = _smolvlm_image_only(stock) if stock.__name__ == "SmolVLMProcessor" else _without_videos(stock)
    cls.__name__ = cls.__qualname__ = stock.__name__
    return cls


def save_processor(processor: Any, path: Path) -> None:
    """save_pretrained, and the video processor's file without which the stock class (so vLLM) opens no folder."""
    processor.save_pretrained(path)
    name = type(processor).__name__
    target = path / "video_preprocessor_config.json"
    stock = getattr(transformers, name, None)
    if stock is None or not _takes_videos(stock) or not isinstance(processor, ImageOnly) or target.exists():
        return
    image_processor = processor.image_processor
    video_class = _OTHER_VIDEO_NAMES.get(name) or f"{name.removesuffix('Processor')}VideoProcessor"
    config: dict[str, Any] = {"video_processor_type": video_class, "processor_class": name}
    for key in ("patch_size", "temporal_patch_size", "merge_size", "image_mean", "image_std"):
        if getattr(image_processor, key, None) is not None:
            config[key] = getattr(image_processor, key)
    config["size"] = {key: value for key, value in dict(image_processor.size).items() if value is not None}
    if video_class == "SmolVLMVideoProcessor":
        edge = {"longest_edge": image_processor.max_image_size["longest_edge"]}
        sampling = {"fps": 1, "max_frames": 2, "video_size": config["size"]}
        config.update(max_image_size=edge, num_frames=2, fps=1, video_sampling=sampling)
    target.write_text(json.dumps(config, indent=1))


class ImageOnly(ProcessorMixin):
    """Stands between a stock processor and ProcessorMixin, and keeps the missing video part from the latter."""

    def __init__(self, *parts: Any, **options: Any) -> None:
        names = ("image_processor", "tokenizer", _VIDEO)
        given = dict(zip(names, parts, strict=False)) | options
        given.pop(_VIDEO, None)
        super().__init__(**given)


def _takes_videos(stock: type) -> bool:
    return _VIDEO in inspect.signature(stock.__init__).parameters


def _without_videos(stock: type) -> type:
    signature = inspect.signature(stock.__init__)
    kept = [parameter for name, parameter in signature.parameters.items() if name != _VIDEO]

    def __init__(self: Any, *parts: Any, **options: Any) -> None:
        given = signature.replace(parameters=kept).bind(self, *parts, **options)
        named = {key: value for key, value in given.arguments.items() if key not in ("self", "kwargs")}
        stock.__init__(self, **named, **given.arguments.get("kwargs", {}), **{_VIDEO: None})

    __init__.__signature__ = signature.replace(parameters=kept)  # pyright: ignore[reportFunctionMemberAccess]
    return type(stock.__name__, (stock, ImageOnly), {"__init__": __init__})


def _smolvlm_image_only(stock: type) -> type:
    """Its own `__init__` wants the package num2words, which only videos need."""

    class SmolVLM(stock, ImageOnly):
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

    return SmolVLM
