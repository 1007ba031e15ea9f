"""Several processes of one run (`accelerate launch`): which groups each takes, and the sums that make them one run.

A rank holds whole groups, so that sampling, rewards and the forward passes need no other rank; what a group does not
decide alone (batch statistics, normalisers, metrics, gradients) is exchanged as numbers.  No pixels travel.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import torch
from accelerate import PartialState
from torch import distributed, nn

from training import errors

T = TypeVar("T")


class Ranks:
    """The processes of a run.  All ranks call the collectives (`gather` and what follows it) in the same order."""

    def __init__(self, *, cpu: bool) -> None:
        """Find the processes that a launcher such as `accelerate launch` started, or be the only one."""
        self._state = state = PartialState(cpu=cpu)
        self.index = state.process_index
        self.count = state.num_processes
        self.is_main = state.is_main_process
        self.device = torch.device("cpu" if cpu or state.device is None else state.device)

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """This rank's contiguous part; sizes differ by one at most.  The parts in rank order are all items."""
        return items[self.bounds(len(items))]

    def bounds(self, length: int) -> slice:
        """Where this rank's part of `length` items lies."""
        return slice(length * self.index // self.count, length * (self.index + 1) // self.count)

    def gather(self, value: T) -> list[T]:
        """Every rank's value in rank order, on every rank: for numbers, texts and small CPU tensors."""
        if self.count == 1:
            return [value]
        values: list[Any] = [None] * self.count
        distributed.all_gather_object(values, value)
        return values

    def any(self, flag: bool) -> bool:
        return any(self.gather(flag))

    def together(self, work: Callable[[], T]) -> T:
        """Do this rank's part.  A part that fails on one rank is raised on all: no rank waits for a dead one."""
        if self.count == 1:
            return work()
        result, failure = None, None
        try:
            result = work()
        except Exception as error:  # told to the other ranks first, raised below
            failure = error
        told = self.gather(None if failure is None else (_kind(failure), str(failure) or repr(failure)))
        if failure is not None:
            raise failure
        for index, other in enumerate(told):
            if other is not None:
                kind, message = other
                raise kind(f"process {index} of {self.count}: {message}")
        return cast(T, result)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up the gradients of all ranks in place.

        A parameter that no rank used keeps no gradient, one that this rank alone did not use (the vision tower, when
        its prompts have no images) takes part with zero.
        """
        if self.count == 1:
            return
        owned = list(parameters)
        used = [any(column) for column in zip(*self.gather([p.grad is not None for p in owned]), strict=True)]
        for parameter, is_used in zip(owned, used, strict=True):
            if is_used:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                distributed.all_reduce(parameter.grad)

    def close(self) -> None:
        self._state.destroy_process_group()


def _kind(error: Exception) -> type[Exception]:
    """The class of training.errors that an error belongs to: those say whose fault it was, and can be sent."""
    known = (kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
    return next(known, RuntimeError)
