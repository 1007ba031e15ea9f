"""TRL 1.16.0 on the benchmark's workload: CPU seconds of each step, whole and by phase."""

import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, Image, List, Value
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

from tests.benchmarks.workload import QUESTIONS, Setting, build_model, picture, processor_and_config, reward


class Timed(TrainerCallback):
    """CPU seconds of each optimizer step, from the end of the one before it."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.phases: dict[str, float] = defaultdict(float)
        self._last = 0.0

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._last = time.process_time()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        now = time.process_time()
        self.seconds.append(now - self._last)
        self._last = now

    def watch(self, trainer: Any, method: str, phase: str) -> None:
        """Add the CPU time of a method to a phase."""
        inner: Callable[..., Any] = getattr(trainer, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = time.process_time()
            try:
                return inner(*args, **kwargs)
            finally:
                self.phases[phase] += time.process_time() - begun

        setattr(trainer, method, timed)


def rows(setting: Setting, steps: int) -> Dataset:
    features = Features(
        {"prompt": List({"role": Value("string"), "content": Value("string")}), "images": List(Image())}
    )
    content = [
        {
            "prompt": [{"role": "user", "content": QUESTIONS[row % len(QUESTIONS)]}],
            "images": [picture(setting, row, number) for number in range(setting.images)],
        }
        for row in range(setting.prompts * steps)
    ]
    return Dataset.from_list(content, features=features)


def scored(completions: list[Any], **_: Any) -> list[float]:
    return reward([message[0]["content"] for message in completions])


def run(setting: Setting, folder: Path, *, steps: int) -> Timed:
    """Train with the peer's defaults where they do not change the mathematics; gradient checkpointing is off."""
    common: dict[str, Any] = {
        "output_dir": str(folder), "per_device_train_batch_size": setting.prompts * setting.num_generations,
        "num_generations": setting.num_generations, "max_completion_length": setting.length, "max_steps": steps,
        "learning_rate": 1e-5, "lr_scheduler_type": "constant", "beta": 0.0, "shuffle_dataset": False, "use_cpu": True,
        "bf16": False, "gradient_checkpointing": False, "report_to": "none", "save_strategy": "no", "logging_steps": 1,
        "disable_tqdm": True, "seed": 0, "dataloader_num_workers": 0,
    }  # fmt: skip
    trainer_class, config_class = (
        (GRPOTrainer, GRPOConfig) if setting.algorithm == "grpo" else (RLOOTrainer, RLOOConfig)
    )
    timed = Timed()
    trainer = trainer_class(
        model=build_model(),
        reward_funcs=scored,
        args=config_class(**common),
        train_dataset=rows(setting, steps),
        processing_class=processor_and_config()[0],
        callbacks=[timed],
    )
    timed.watch(trainer, "_generate_single_turn", "generate")
    timed.watch(trainer, "_get_per_token_logps_and_entropies", "forward")
    timed.watch(trainer, "_tokenize_prompts", "preprocess")
    timed.watch(trainer, "_generate_and_score_completions", "rollout")
    trainer.train()
    return timed
