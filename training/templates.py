"""Chat messages as the text of a model's own chat template, for templates that take content blocks or plain strings."""

import copy
from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError

from training.errors import ModelError

_PROBE = "vlmscope"
_REFUSALS = (TemplateError, TypeError, ValueError, KeyError, AttributeError)


class ChatTemplate:
    """Renders messages with a processor's chat template."""

    def __init__(self, processor: Any) -> None:
        """Raises ModelError when there is no chat template, or none that renders a user's message."""
        self._processor = processor
        if not getattr(processor, "chat_template", None):
            raise ModelError(
                "the model's processor has no chat template; add chat_template.jinja to the model directory"
            )
        blocks = [{"role": "user", "content": [{"type": "text", "text": _PROBE}]}]
        text = [{"role": "user", "content": _PROBE}]
        if not self._takes(blocks) and not self._takes(text):
            raise ModelError("the model's chat template renders no user message; correct chat_template.jinja")
        self._blocks = self._takes(blocks)

    def render(self, messages: Sequence[dict[str, Any]]) -> str:
        """The prompt's text up to where the completion begins.

        An assistant message at the end is a prefill: it stays open and the completion continues it.
        """
        # processors were seen to rewrite the lists that they are given
        own = [self._in_form(message) for message in copy.deepcopy(list(messages))]
        prefill = own[-1]["role"] == "assistant"
        return self._processor.apply_chat_template(
            own, add_generation_prompt=not prefill, continue_final_message=prefill, tokenize=False
        )

    def _in_form(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._blocks:
            return message
        image = _image_text(self._processor)
        parts = [image if part["type"] == "image" else part["text"] for part in message["content"]]
        return {**message, "content": "".join(parts)}

    def _takes(self, messages: list[dict[str, Any]]) -> bool:
        """Whether the probe is rendered as text, not as the printed form of a Python list."""
        try:
            text = self._processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        except _REFUSALS:
            return False
        return _PROBE in text and "'type'" not in text and '"type"' not in text


def _image_text(processor: Any) -> str:
    """What a prompt's text holds for an image before the processor puts in the placeholders."""
    start, end = (getattr(processor, f"vision_{edge}_token", "") for edge in ("start", "end"))
    return start + (getattr(processor, "boi_token", None) or processor.image_token) + end
