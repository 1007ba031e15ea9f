"""The built-in models on disk: made at first use, kept in the cache under a name that tells how they were made."""

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import torch
import transformers

from training.config import DataConfig
from training.datasets import Access, open_dataset
from training.demo import warm_start as warm
from training.demo.smolvlm import build_smolvlm
from training.models_catalogue import BUILT_IN, split_seed
from training.policy import make_policy

CORPUS_ROWS = 4000
RECIPE = 2
"""Raised when a change makes other weights from the same name and seed."""


def base_model(path: str, cache: Path, *, progress: Callable[[str], None]) -> Path:
    """The directory of a built-in model such as demo-color or demo-color@3, made when it is not there.

    Two processes that ask at once make it once; a directory appears whole or not at all.
    """
    name, seed = split_seed(path)
    directory = cache / "models" / f"{name}-seed{seed}-{_fingerprint(name)}"
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / f".{name}-seed{seed}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            _make(name, seed, directory, progress)
    return directory


def _make(name: str, seed: int, directory: Path, progress: Callable[[str], None]) -> None:
    model_info = BUILT_IN[name]
    dataset = open_dataset(DataConfig(source="easy-vqa", subset="color"), access=Access(roots=()))
    rows = dataset.table.rows[:CORPUS_ROWS]
    texts = [str(row["question"]) for row in rows] + [model_info.answer.format(answer=row["answer"]) for row in rows]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # with one thread the weights repeat to the last bit
    try:
        policy = make_policy(*build_smolvlm(texts, seed=seed))
        parameters = sum(parameter.numel() for parameter in policy.model.parameters())

        def report(step: int, probability: float) -> None:
            if step == 1 or step % 10 == 0:
                progress(
                    f"making {name}: SmolVLM, {parameters / 1e6:.1f} M parameters; supervised step {step}, "
                    f"right answers at {probability:.2f} of {model_info.target_probability:.2f}"
                )

        warm.warm_start(
            policy, dataset, model_info.answer, target=model_info.target_probability, seed=seed, progress=report
        )
    finally:
        torch.set_num_threads(threads)
    temporary = directory.with_name(f".tmp-{directory.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    policy.save(temporary)
    temporary.rename(directory)


def _fingerprint(name: str) -> str:
    """Of everything that decides the weights, so that a changed recipe or library makes a new model."""
    info = BUILT_IN[name]
    parts = [RECIPE, info.answer, info.target_probability, torch.__version__, transformers.__version__]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
