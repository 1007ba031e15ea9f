"""What adding an algorithm takes: a module, a config class, one line of the registry; nothing else knows the names."""

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pytest
import torch
from torch import Tensor

from tests.project.repository import ROOT, python_files
from tests.tiny_vlms import tiny_policy
from training.algorithms import ALGORITHMS
from training.algorithms.types import Batch, Loss, Scored, Stats
from training.config import ALGORITHM_CONFIGS, RunConfig
from training.config.algorithms import Objective
from training.control import NeverStop
from training.datasets import Access
from training.recorder import record_files
from training.records import StepRecord, parse_record
from training.rewards import RewardSet
from training.run import run

OWN = ("training/algorithms", "training/config/algorithms.py")
EXAMPLES = ("app/api/bodies.py",)
"""Shows requests that name an algorithm."""


class ReinforceConfig(Objective):
    """Plain REINFORCE without a baseline."""

    name: Literal["reinforce"] = "reinforce"
    beta: float = 0.0


def advantages(config: ReinforceConfig, scored: Scored) -> Tensor:
    return scored.rewards_PG.nan_to_num(0.0)


def loss(config: ReinforceConfig, logp_BT: Tensor, batch: Batch) -> Loss:
    """-mean_i r_i sum_t log p_it."""
    value = -(logp_BT * batch.mask_BT * batch.advantages_B[:, None]).sum() / batch.step_completions
    return Loss(value, Stats({"reinforce/loss": (value.item(), 1.0)}))


def test_every_algorithm_has_a_config_class_and_every_class_an_algorithm():
    assert ALGORITHMS.keys() == ALGORITHM_CONFIGS.keys()


def test_no_other_module_names_an_algorithm():
    named = {path.as_posix() for path in python_files("app", "training", "worker") if _names_an_algorithm(path)}
    assert not {path for path in named if not path.startswith(OWN)} - set(EXAMPLES)


def _names_an_algorithm(path: Path) -> bool:
    nodes = ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
    return any(isinstance(node, ast.Constant) and node.value in ALGORITHMS for node in nodes)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_run_trains_with_an_algorithm_that_it_never_heard_of(tmp_path, monkeypatch):
    tiny_policy("smolvlm").save(tmp_path / "model")
    monkeypatch.setitem(ALGORITHMS, "reinforce", SimpleNamespace(advantages=advantages, loss=loss))
    monkeypatch.setattr(
        "training.run.build_rewards",
        lambda _: RewardSet({"length": lambda completions: [1.0 for _ in completions]}, [1.0]),
    )
    config = RunConfig.model_validate(
        {
            "model": {"path": str(tmp_path / "model")},
            "data": {"subset": "color"},
            "generation": {"num_generations": 2, "max_completion_length": 3},
            "optimization": {"max_steps": 1, "prompts_per_step": 2},
            "checkpoint": {"save_steps": 0},
            "resources": {"threads": 1, "device": "cpu"},
        }
    ).model_copy(update={"algorithm": ReinforceConfig()})
    out = tmp_path / "run"
    run(config, out=out, attempt=None, control=NeverStop(), cache=out / "cache", access=Access(roots=None))
    [file] = record_files(out)
    [step] = [r for line in file.read_bytes().splitlines() if isinstance(r := parse_record(line), StepRecord)]
    assert step.metrics["reinforce/loss"] == step.metrics["loss"] > 0
    assert {completion.advantage for group in step.groups for completion in group.completions} == {1.0}
    assert torch.isfinite(torch.tensor(step.metrics["grad_norm"]))
