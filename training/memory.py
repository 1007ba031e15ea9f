"""Memory of the device: what an exhausted one says, what is told when nothing smaller is left to try, and the peak."""

import resource
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from training.datasets import Sample
from training.encoding import EncodedPrompt
from training.errors import OutOfMemory

T = TypeVar("T")

_EXHAUSTED = ("not enough memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""What a RuntimeError of torch says on the CPU and of cuBLAS; CUDA's allocator has a class of its own."""


def if_memory_lasts(work: Callable[[], T]) -> T | None:
    """The result of `work`, or None when memory ran out and what it held is free again.  Other errors are raised."""
    try:
        return work()
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    # outside of the handler: while it runs, the traceback keeps the tensors of every frame alive
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None


def is_out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or any(sign in str(error) for sign in _EXHAUSTED)


def too_large(samples: Sequence[Sample], prompts: Sequence[EncodedPrompt], *, doing: str) -> OutOfMemory:
    """The error for memory that does not hold one completion: it names the longest prompt and what to lower."""
    longest = max(range(len(prompts)), key=lambda p: len(prompts[p]))
    sizes = ", ".join(f"{image.width} x {image.height} pixels" for image in samples[longest].images) or "no image"
    return OutOfMemory(
        f"out of memory while {doing}, with one completion at a time; the longest prompt is row "
        f"{samples[longest].row}: {len(prompts[longest])} tokens, {sizes}. Lower the images' resolution or "
        "generation.max_completion_length, set optimization.activation_checkpointing, or use parameters.method = lora"
    )


def peak_bytes(device: torch.device) -> int:
    """Most memory in use at once so far: torch's own on a CUDA device, else the resident memory of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
