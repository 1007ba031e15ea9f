"""Activation checkpointing that works with a shared prefix: layers are computed again in the backward pass.

transformers' own switches the key-value cache off, since a layer that is computed again would write its keys twice.
Here a layer that is given a cache gets a cache of its own at every computation, with the keys and values as they were
before it; what it wrote the first time is what goes on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import Cache
from transformers.modeling_layers import GradientCheckpointingLayer

from training.forward import cache_of_its_own
from training.logprobs import ScoreFunction, TokenScores, ToScore
from training.policy import Policy


def checkpointed(score: ScoreFunction) -> ScoreFunction:
    """`score`, keeping only the inputs of the model's layers, and keys and values, for the backward pass."""

    def scores(policy: Policy, given: ToScore) -> TokenScores:
        with _checkpointed_layers(policy.model):
            return score(policy, given)

    return scores


@contextmanager
def _checkpointed_layers(model: nn.Module) -> Iterator[None]:
    """Vision and language layers alike; the forward of each is replaced on the object while this lasts."""
    layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    for layer in layers:
        layer.forward = _recomputed(layer.forward)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _recomputed(forward: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        name = next((name for name, value in kwargs.items() if isinstance(value, Cache)), None)
        if name is None:
            return checkpoint(forward, *args, use_reentrant=False, **kwargs)
        cache: Cache = kwargs.pop(name)
        before, written = cache_of_its_own(cache), list[Any]()

        def once_more() -> Any:
            own = cache_of_its_own(before)
            output = forward(*args, **kwargs, **{name: own})
            if not written:
                written.extend(own.layers)
            return output

        output = checkpoint(once_more, use_reentrant=False)
        cache.layers[:] = written
        return output

    return run
