"""A small run under `accelerate launch`: a dataset whose last rows have no images, and a reward that may fail late.

argv: directory, model path, algorithm; then `fail` to have the reward raise for text-only prompts from step 2 on.
"""

import sys
from pathlib import Path

import training.run
from tests.training.data_files import write_jsonl
from tests.training.pictures import plain_picture
from training.config import RunConfig
from training.control import NeverStop
from training.datasets import Access
from training.rewards import RewardSet
from training.run import run

STEPS, PROMPTS, GENERATIONS = 3, 3, 4
OPTIONS = {
    "grpo": {"scale_rewards": "batch", "top_entropy_quantile": 0.7, "dynamic_sampling_rounds": 1, "entropy_coef": 0.01},
    "rloo": {"normalize_advantages": True},
}
"""Those whose numbers depend on what the other ranks hold."""


def main(directory: str, model: str, algorithm: str, *options: str) -> None:
    out = Path(directory)
    out.mkdir(parents=True, exist_ok=True)
    training.run.build_rewards = lambda _: RewardSet({"accuracy": reward(fails="fail" in options)}, [1.0])
    run(
        run_config(out, model, algorithm),
        out=out / "run",
        attempt=None,
        control=NeverStop(),
        cache=out / "cache",
        access=Access(roots=None),
    )


def reward(*, fails: bool):
    def accuracy(completions, images, step):
        if fails and step > 1 and not all(images):
            raise RuntimeError("no image to look at")
        return [float(len(text) % 2) for text in completions]

    return accuracy


def run_config(out: Path, model: str, algorithm: str) -> RunConfig:
    """Six rows for three prompts a step, in order: the first has an image, the others have none, and so again."""
    rows = []
    for row in range(6):
        image = f"{row}.png" if row % PROMPTS == 0 else None
        if image:
            (out / image).write_bytes(plain_picture(("red", "blue")[row // PROMPTS], size=(20 + row, 30)))
        rows.append({"question": f"what is number {row}?", "answer": "one", "image": image})
    data = write_jsonl(out / "data.jsonl", rows)
    return RunConfig.model_validate(
        {
            "model": {"path": model},
            "data": {"source": data, "shuffle": False},
            "algorithm": {"name": algorithm, "beta": 0.05, "num_iterations": 2} | OPTIONS[algorithm],
            "generation": {"num_generations": GENERATIONS, "max_completion_length": 5},
            # a large epsilon: with a small one AdamW turns the rounding of a gradient near 0 into a whole step
            "optimization": {
                "max_steps": STEPS,
                "prompts_per_step": PROMPTS,
                "learning_rate": 1e-3,
                "adam_epsilon": 1e-3,
            },
            "evaluation": {"split": "train", "samples": 5},
            "resources": {"threads": 1, "device": "cpu"},
        }
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
