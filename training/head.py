"""The model's head: logits of hidden states, as the model itself would compute them."""

from torch import Tensor
from transformers import PreTrainedModel


def head_logits(model: PreTrainedModel, hidden: Tensor) -> Tensor:
    """(..., V) logits of (..., H) last hidden states: the output layer, then the soft cap where the family has one.

    z = cap tanh(z / cap) keeps logits within +-cap (Gemma 2, arXiv 2408.00118, section 2).
    """
    head = model.get_output_embeddings()
    assert head is not None  # AutoModelForImageTextToText makes models that have one
    logits = head(hidden)
    cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    return logits if cap is None else (logits / cap).tanh() * cap
