"""The model's head: logits of hidden states, as the model itself would compute them."""

import inspect
from functools import cache

from torch import Tensor
from transformers import PreTrainedModel


def head_logits(model: PreTrainedModel, hidden: Tensor) -> Tensor:
    """(..., V) logits of (..., H) last hidden states: the output layer, then what the model's own forward does to them.

    That is a factor (Cohere), a divisor (Granite) or a soft cap, z = cap tanh(z / cap), which keeps logits within +-cap
    (Gemma 2, arXiv 2408.00118, section 2).
    """
    head = model.get_output_embeddings()
    assert head is not None  # AutoModelForImageTextToText makes models that have one
    logits, text = head(hidden), model.config.get_text_config()
    reads = _names_in_forward(type(model))
    if "logit_scale" in reads:
        logits = logits * text.logit_scale
    if "logits_scaling" in reads:
        logits = logits / text.logits_scaling
    if "final_logit_softcapping" in reads and (cap := text.final_logit_softcapping) is not None:
        logits = (logits / cap).tanh() * cap
    return logits


@cache
def _names_in_forward(model_class: type[PreTrainedModel]) -> frozenset[str]:
    """Attributes that a class's forward reads: a text model's config may hold a cap that the VLM around it ignores."""
    return frozenset(inspect.unwrap(model_class.forward).__code__.co_names)
