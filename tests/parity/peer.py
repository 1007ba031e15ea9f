"""TRL's loss and advantage code, called without its trainers' set-up: only what those lines read is there."""

import inspect
import math
import textwrap
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from trl import GRPOTrainer, RLOOTrainer
from trl.trainer.utils import nanstd

ARGS = {
    "use_bias_correction_kl": True,
    "delta": None,
    "sapo_temperature_pos": 1.0,
    "sapo_temperature_neg": 1.05,
    "vespo_k_pos": 2.0,
    "vespo_lambda_pos": 3.0,
    "vespo_k_neg": 3.0,
    "vespo_lambda_neg": 2.0,
    "steps_per_generation": 1,
    "report_to": [],
}
SELF = {
    "aux_loss_enabled": False,
    "top_entropy_quantile": 1.0,
    "off_policy_mask_threshold": None,
    "importance_sampling_level": "token",
    "beta": 0.0,
    "loss_type": "dapo",
    "epsilon_low": 0.2,
    "epsilon_high": 0.2,
    "use_vllm": False,
    "vllm_importance_sampling_correction": False,
    "use_adaptive_entropy": False,
    "entropy_coef": 0.0,
}


def peer_loss(
    trainer: type[GRPOTrainer] | type[RLOOTrainer],
    logp_BT: Tensor,
    entropy_BT: Tensor,
    inputs: dict[str, Any],
    **options: Any,
) -> Tensor:
    """The peer's `_compute_loss` under given log-probabilities; inputs: all but the ids; options: see `bare`."""
    one = bare(trainer, **options)
    one._get_per_token_logps_and_entropies = lambda *_, **__: (logp_BT, entropy_BT, None)
    blank = torch.zeros(len(logp_BT), 1, dtype=torch.long)
    ids = {"prompt_ids": blank, "prompt_mask": blank, "completion_ids": torch.zeros(logp_BT.shape, dtype=torch.long)}
    return one._compute_loss(one.model, ids | inputs)


def bare(
    trainer: type[GRPOTrainer] | type[RLOOTrainer], *, micro_batches: int = 1, limit: int = 512, **options: Any
) -> Any:
    """A trainer of the peer with the attributes that its loss reads, for one of `micro_batches` accumulated ones.

    limit: its max_completion_length.  options: what differs from the defaults above.
    """
    assert options.keys() <= SELF.keys() | ARGS.keys()
    one: Any = object.__new__(trainer)
    for name, value in (SELF | {key: options[key] for key in options.keys() & SELF.keys()}).items():
        setattr(one, name, value)
    given = {key: options[key] for key in options.keys() & ARGS.keys()}
    one.args = SimpleNamespace(**(ARGS | {"steps_per_generation": micro_batches} | given))
    one.max_completion_length = limit
    one.current_gradient_accumulation_steps = micro_batches
    one._entropy_bonus_enabled = one.entropy_coef != 0
    one._metrics = {"train": defaultdict(list)}
    one.model = SimpleNamespace(training=True)
    one.state = SimpleNamespace(global_step=0)

    def same(tensor: Tensor, *_: Any, **__: Any) -> Tensor:
        return tensor

    one.accelerator = SimpleNamespace(
        num_processes=1, gather=same, gather_for_metrics=same, reduce=same, pad_across_processes=same,
        sync_gradients=True, is_main_process=True, autocast=nullcontext,
    )  # fmt: skip
    return one


def peer_advantages(
    trainer: type[GRPOTrainer] | type[RLOOTrainer], rewards_PGK: Tensor, weights_K: Tensor, **options: Any
) -> Tensor:
    """(P, G) by the lines of the peer's `_generate_and_score_completions` that turn rewards into advantages."""
    prompts, group, functions = rewards_PGK.shape
    names = {
        "self": SimpleNamespace(
            reward_weights=weights_K,
            reward_funcs=[None] * functions,
            num_generations=group,
            **({"multi_objective_aggregation": "sum_then_normalize", "scale_rewards": "group"} | options),
        ),
        "rewards_per_func": rewards_PGK.view(prompts * group, functions),
        "num_generations": group,
        "gather": lambda tensor: tensor,
        "device": rewards_PGK.device,
        **options,
    }
    _run_lines(trainer._generate_and_score_completions, "unscorable_mask =", "# Slice to keep only", names)
    return names["advantages"].view(prompts, group)


def peer_correction(
    old_BT: Tensor, sampling_BT: Tensor, mask_BT: Tensor, *, mode: str, low: float, high: float
) -> Tensor:
    """Importance weights by the lines of the peer's GRPO trainer that compute them for vLLM."""
    names = {
        "self": SimpleNamespace(
            vllm_importance_sampling_mode=mode,
            vllm_importance_sampling_clip_min=low,
            vllm_importance_sampling_clip_max=high,
        ),
        "old_per_token_logps": old_BT,
        "sampling_per_token_logps": sampling_BT,
        "completion_mask": mask_BT,
        "tool_mask": None,
    }
    begin, end = "mask = completion_mask if tool_mask is None", "# Compute the per-token log probabilities for the ref"
    _run_lines(GRPOTrainer._generate_and_score_completions, begin, end, names)
    return names["vllm_importance_sampling_ratio"]


def _run_lines(function: Callable[..., Any], begin: str, end: str, names: dict[str, Any]) -> None:
    """Execute the lines of a function from the first that begins so until the first after it that begins so."""
    lines = inspect.getsource(inspect.unwrap(function)).splitlines()
    first = next(n for n, line in enumerate(lines) if line.strip().startswith(begin))
    last = next(n for n, line in enumerate(lines) if n > first and line.strip().startswith(end))
    exec(textwrap.dedent("\n".join(lines[first:last])), {"torch": torch, "math": math, "nanstd": nanstd}, names)
