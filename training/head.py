"""The model's head: logits of hidden states, as the model itself would compute them."""

from torch import Tensor, nn


def head_logits(model: nn.Module, hidden: Tensor) -> Tensor:
    """(..., V) logits of (..., H) last hidden states: the output layer, then the soft cap where the family has one.

    z = cap tanh(z / cap) keeps logits within +-cap (Gemma 2, arXiv 2408.00118, section 2).
    """
    logits = model.get_output_embeddings()(hidden)
    cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    return logits if cap is None else (logits / cap).tanh() * cap
