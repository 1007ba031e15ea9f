"""Chat messages as the text of a model's own chat template, for templates that take content blocks or plain strings."""

import copy
from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError

from training.errors import ModelError
from training.vision import Family

_PROBE = "vlmscope"
_BLOCKS = [{"type": "text", "text": _PROBE}]
_REFUSALS = (TemplateError, TypeError, ValueError, KeyError, AttributeError)


class ChatTemplate:
    """Renders messages with a processor's chat template."""

    def __init__(self, processor: Any, family: Family) -> None:
        """Raises ModelError when there is no chat template, or none that renders a user's message."""
        self._processor = processor
        image = getattr(processor, "boi_token", None) or processor.image_token
        self._image = image.join(family.around)
        self._own = getattr(processor, "chat_template", None) or getattr(processor.tokenizer, "chat_template", None)
        if not self._own:
            raise ModelError(
                "the model's processor has no chat template; add chat_template.jinja to the model directory"
            )
        self._strings: set[str] = set()
        if not self._takes("user", _BLOCKS):
            if not self._takes("user", _PROBE):
                raise ModelError("the model's chat template renders no user message; correct chat_template.jinja")
            self._strings.add("user")
        # templates were seen that take blocks from the user and print the system's as a Python list
        self._strings |= {role for role in ("system", "assistant") if not self._takes(role, _BLOCKS)}

    def render(self, messages: Sequence[dict[str, Any]]) -> str:
        """The prompt's text up to where the completion begins.

        An assistant message at the end is a prefill: it stays open and the completion continues it.
        """
        # processors were seen to rewrite the lists that they are given
        own = [self._in_form(message) for message in copy.deepcopy(list(messages))]
        prefill = own[-1]["role"] == "assistant"
        return self._apply(own, add_generation_prompt=not prefill, continue_final_message=prefill)

    def _apply(self, messages: list[dict[str, Any]], **options: bool) -> str:
        return self._processor.apply_chat_template(messages, chat_template=self._own, tokenize=False, **options)

    def _in_form(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["role"] not in self._strings:
            return message
        parts = [self._image if part["type"] == "image" else part["text"] for part in message["content"]]
        return {**message, "content": "".join(parts)}

    def _takes(self, role: str, content: Any) -> bool:
        """Whether a message's content is rendered as its text, and not refused or printed as a Python list."""
        tried = {"role": role, "content": copy.deepcopy(content)}
        user = self._in_form({"role": "user", "content": [{"type": "text", "text": "?"}]})
        turns = {"user": [tried], "system": [tried, user], "assistant": [user, tried, user]}[role]
        try:
            text = self._apply(turns, add_generation_prompt=True)
        except _REFUSALS:
            return False
        return _PROBE in text and "'type'" not in text and '"type"' not in text
