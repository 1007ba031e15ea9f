"""Models without a row in training/vision.py: tried on small prompts when they are loaded, and taken by their numbers.

How a family lays out its images cannot be seen from the shapes of its tensors.  So nothing is inferred from them: each
way to join prompts is tried, and one is taken only if it changes no number, whatever stands beside a prompt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from training.encoding import EncodedPrompt, join_prompts, placeholder_fault, split_encoding
from training.errors import ModelError
from training.forward import prefill
from training.logprobs import ToScore, log_distribution, plain_scores, shared_scores
from training.policy import Policy
from training.sharing import tolerance
from training.templates import ChatTemplate
from training.vision import UNTRIED, Family, Join

_TEXT = "What is shown here?"
_SIZES = ((), ((64, 48),), ((300, 900), (48, 64)))
"""Sizes of the images of each prompt that is tried: different enough for processors that cut tiles."""
_TOKENS = ("input_ids", "attention_mask")


@torch.no_grad()
def with_family(policy: Policy) -> Policy:
    """The policy with a row that was seen to fit; the same policy when its family has one already.

    Raises ModelError that says what the model lacks.
    """
    if policy.family is not UNTRIED:
        return policy
    name = policy.model.config.model_type
    if getattr(policy.model.config, "image_token_id", None) is None:
        raise ModelError(f"model type {name!r} has no image_token_id in its config.json, so its images have no place")
    policy.model.eval()
    faults = []
    for family in _candidates(policy):
        fault = _fault(replace(policy, family=family))
        if fault is None:
            return replace(policy, family=family)
        joined = next(iter(family.images.values())).value
        faults.append(f"with image tensors joined by {joined}, {fault}")
    raise ModelError(
        f"model type {name!r} has no row in training/vision.py, and none could be found by trying: "
        f"{'; '.join(faults)}. Add a row that says how its images are laid out"
    )


def _candidates(policy: Policy) -> list[Family]:
    """What the processor returns for a prompt with one image, joined by each simple rule."""
    try:
        keys = set(_encoding(policy, _SIZES[1])) - set(_TOKENS)
    except ModelError:
        raise
    except Exception as error:  # as in _fault
        raise ModelError(f"the model's processor refuses a prompt with one image: {error}") from error
    types = tuple(sorted(key for key in keys if key.endswith("token_type_ids")))
    mrope = hasattr(policy.model.model, "get_rope_index")
    images = sorted(keys - set(types))
    if not images:
        raise ModelError("the model's processor returns no tensor for an image, so the model is blind to it")
    return [
        Family(dict.fromkeys(images, join), features=None, tokens=None, types=types, mrope=mrope)
        for join in (Join.ROWS, Join.SAMPLES)
    ]


def _fault(policy: Policy) -> str | None:
    """Why a row does not fit, None when it does."""
    try:
        prompts = [_prompt(policy, sizes) for sizes in _SIZES]
        gaps = _gaps(policy, prompts)
    except Exception as error:  # any code of the hub may run here: whatever it raises is the reason of the refusal
        return f"{type(error).__name__}: {str(error) or 'no message'}"[:300]
    limit = tolerance(policy)
    return next((f"{what} differ by {gap:.2g} nats" for what, gap in gaps.items() if not gap <= limit), None)


def _gaps(policy: Policy, prompts: Sequence[EncodedPrompt]) -> dict[str, float]:
    """Largest differences of log-probabilities between ways that must agree."""
    own, alone, together = (
        torch.cat([_own_forward(policy, prompt) for prompt in prompts]),
        torch.cat([prefill(policy, [prompt]).logits_BV for prompt in prompts]),
        prefill(policy, prompts[::-1]).logits_BV.flip(0),
    )
    ids_BT = _few_ids(policy, len(prompts) * 2)
    mask_BT = torch.ones_like(ids_BT, dtype=torch.bool)
    given = ToScore(prompts, ids_BT, mask_BT, temperature=1.0)
    shared, plain = (score(policy, given).logp_BT for score in (shared_scores, plain_scores))
    return {
        "the model's own numbers and ours for one prompt": _distance(policy, own, alone),
        "the numbers of a prompt alone and in a batch": _distance(policy, alone, together),
        "the numbers with a shared and with a repeated prompt": (shared - plain).abs().max().item(),
    }


def _own_forward(policy: Policy, prompt: EncodedPrompt) -> Tensor:
    """(1, V) logits without padding, cache and positions of ours."""
    inputs = join_prompts(policy.family, [prompt], pad_id=policy.pad_id, device=policy.device)
    return policy.model(**inputs, use_cache=False).logits[:, -1]


def _distance(policy: Policy, logits_PV: Tensor, others_PV: Tensor) -> float:
    gaps_PV = log_distribution(policy, logits_PV, 1.0) - log_distribution(policy, others_PV, 1.0)
    return gaps_PV.nan_to_num(0.0).abs().max().item()  # forbidden tokens: -inf - -inf


def _few_ids(policy: Policy, rows: int) -> Tensor:
    """(rows, 3) ids of ordinary tokens, different in each row."""
    ids = policy.tokenizer(_TEXT, add_special_tokens=False).input_ids
    return torch.tensor([[ids[(row + t) % len(ids)] for t in range(3)] for row in range(rows)], device=policy.device)


def _prompt(policy: Policy, sizes: Sequence[tuple[int, int]]) -> EncodedPrompt:
    prompt = split_encoding(policy.family, _encoding(policy, sizes), len(sizes))
    if (fault := placeholder_fault(policy.family, policy.model.config, prompt)) is not None:
        raise ValueError(fault)
    return prompt


def _encoding(policy: Policy, sizes: Sequence[tuple[int, int]]) -> Mapping[str, Any]:
    content = [*({"type": "image"} for _ in sizes), {"type": "text", "text": _TEXT}]
    text = ChatTemplate(policy.processor, policy.family).render([{"role": "user", "content": content}])
    images = [Image.radial_gradient("L").resize(size).convert("RGB") for size in sizes]
    return policy.processor(text=[text], images=[images] if images else None, return_tensors="pt")
