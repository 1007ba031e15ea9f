"""The model's forward pass over a group: the prompt once, its key-value cache repeated, completions after it.

Two ways to the same numbers.  `prefill` + `extend` run each prompt once and share its cache, graph included, among its
G completions.  `whole` repeats the prompt for every completion, as trainers usually do; it is the yardstick of the
first, and the fallback where a model's cache cannot be shared.
"""

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from training.encoding import EncodedPrompt, join_prompts, pad_rows
from training.head import head_logits
from training.policy import Policy


@dataclass(frozen=True, slots=True)
class Prefix:
    """Prompts that the model has read.

    cache: keys and values of B rows; hidden_BH: the last hidden state at each row's last token; mask_BL: 1 for real
    tokens; position_B: position of the next token.
    """

    policy: Policy
    cache: Any
    hidden_BH: Tensor
    mask_BL: Tensor
    position_B: Tensor

    @property
    def logits_BV(self) -> Tensor:
        """Of the next token; computed anew at every look."""
        return head_logits(self.policy.model, self.hidden_BH)

    def repeated(self, num_generations: int) -> "Prefix":
        """Each row for G completions: B*G rows in group order, with a cache of their own; a graph goes on."""
        cache = cache_of_its_own(self.cache)
        if num_generations > 1:
            cache.batch_repeat_interleave(num_generations)
        tensors = (self.hidden_BH, self.mask_BL, self.position_B)
        return Prefix(self.policy, cache, *(tensor.repeat_interleave(num_generations, 0) for tensor in tensors))

    def select(self, rows: Tensor) -> "Prefix":
        """Keep some rows.  The cache is changed in place: use only what is returned."""
        self.cache.batch_select_indices(rows)
        return replace(
            self, hidden_BH=self.hidden_BH[rows], mask_BL=self.mask_BL[rows], position_B=self.position_B[rows]
        )


def cache_of_its_own(cache: Any) -> Any:
    """The same keys and values in objects of its own: a cache replaces its tensors and never writes into them."""
    own = copy.copy(cache)
    own.layers = [copy.copy(layer) for layer in cache.layers]
    return own


def prefill(policy: Policy, prompts: Sequence[EncodedPrompt]) -> Prefix:
    """Run P prompts once: a prefix of P rows."""
    inputs = join_prompts(policy.family, prompts, pad_id=policy.pad_id, device=policy.device)
    positions, next_P = _prompt_positions(policy, inputs)
    cache = DynamicCache(config=policy.model.config.get_text_config())
    hidden_PH = _hidden(policy, **inputs, position_ids=positions, cache=cache, use_cache=True)[:, -1]
    return Prefix(policy, cache, hidden_BH=hidden_PH, mask_BL=inputs["attention_mask"], position_B=next_P)


def extend(policy: Policy, prefix: Prefix, ids_BT: Tensor, mask_BT: Tensor) -> tuple[Prefix, Tensor]:
    """Read T more tokens of every row.  Returns the longer prefix and last hidden states (B, T, H).

    The given prefix's cache grows in place: go on with the returned one only.
    """
    length = ids_BT.shape[1]
    offsets_T = torch.arange(length, device=ids_BT.device)
    positions_BT = prefix.position_B[:, None] + offsets_T
    mask_BL = torch.cat([prefix.mask_BL, mask_BT.to(prefix.mask_BL.dtype)], 1)
    hidden_BTH = _hidden(
        policy,
        input_ids=ids_BT,
        attention_mask=mask_BL,
        position_ids=_three_axes(positions_BT) if policy.family.mrope else positions_BT,
        cache=prefix.cache,
        use_cache=True,
    )
    return replace(
        prefix, hidden_BH=hidden_BTH[:, -1], mask_BL=mask_BL, position_B=prefix.position_B + length
    ), hidden_BTH


def whole(policy: Policy, prompts: Sequence[EncodedPrompt], ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Last hidden states (B, T, H) that predict completions of B prompts (already repeated), each run as one row."""
    inputs = _whole_inputs(policy, prompts, ids_BT, mask_BT)
    return _hidden(policy, **inputs)[:, -1 - ids_BT.shape[1] : -1]


def stock_logits(policy: Policy, prompts: Sequence[EncodedPrompt], ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Logits (B, T, V) as `whole` runs its rows, by the model's own forward, head included."""
    inputs = _whole_inputs(policy, prompts, ids_BT, mask_BT)
    return policy.model(**inputs, logits_to_keep=ids_BT.shape[1] + 1).logits[:, :-1]


def _whole_inputs(policy: Policy, prompts: Sequence[EncodedPrompt], ids_BT: Tensor, mask_BT: Tensor) -> dict[str, Any]:
    inputs: dict[str, Any] = join_prompts(policy.family, prompts, pad_id=policy.pad_id, device=policy.device)
    positions, next_B = _prompt_positions(policy, inputs)
    length = ids_BT.shape[1]
    positions_BT = next_B[:, None] + torch.arange(length, device=ids_BT.device)
    tail = _three_axes(positions_BT) if policy.family.mrope else positions_BT
    inputs["input_ids"] = torch.cat([inputs["input_ids"], ids_BT], 1)
    inputs["attention_mask"] = torch.cat([inputs["attention_mask"], mask_BT.to(inputs["attention_mask"].dtype)], 1)
    for key in policy.family.types:
        inputs[key] = torch.cat([inputs[key], torch.zeros_like(ids_BT)], 1)
    return inputs | {"position_ids": torch.cat([positions, tail], -1), "use_cache": False}


def _hidden(policy: Policy, *, cache: Any = None, **inputs: Any) -> Tensor:
    """One call of the model without its head.  `cache` was named past_key_values before transformers 5.2x."""
    base = policy.model.base_model
    if cache is not None:
        inputs[_cache_argument(type(base))] = cache
    return base(**inputs).last_hidden_state


def _cache_argument(model_class: type) -> str:
    return "cache" if "cache" in inspect.signature(model_class.forward).parameters else "past_key_values"


def _prompt_positions(policy: Policy, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Position ids of left-padded prompts, counted from their first real token, and the position of what follows.

    Given to the model explicitly: what it would count by itself differs between families, and between a prompt and a
    token that is decoded after it.
    """
    mask_PL = inputs["attention_mask"]
    if policy.family.mrope and "image_grid_thw" in inputs:
        grids = {key: inputs[key] for key in ("image_grid_thw", *policy.family.types)}
        positions_3PL, delta_P1 = policy.model.model.get_rope_index(
            inputs["input_ids"], attention_mask=mask_PL, **grids
        )
        return positions_3PL, mask_PL.sum(1) + delta_P1.reshape(-1)
    positions_PL = (mask_PL.cumsum(1) - 1).clamp(min=0)
    return (_three_axes(positions_PL) if policy.family.mrope else positions_PL), mask_PL.sum(1)


def _three_axes(positions: Tensor) -> Tensor:
    return positions.expand(3, *positions.shape)


def stack_completions(rows: Sequence[Tensor], pad_id: int) -> tuple[Tensor, Tensor]:
    """Completions of different length as (B, T) ids, right-padded, and their (B, T) mask."""
    return pad_rows(rows, pad_id, side="right"), pad_rows(
        [torch.ones_like(row) for row in rows], 0, side="right"
    ).bool()
