"""Small pure pieces: order of data, learning rate, token statistics, records, presets, TOML."""

import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from training.config import OptimizationConfig, RunConfig, dump_toml, load_toml
from training.data_order import DataOrder, check_sizes, held_out_rows
from training.datasets import Access
from training.errors import ConfigError
from training.generation import draw
from training.preflight import check
from training.presets import load_preset, preset_names
from training.records import StepRecord, parse_record
from training.schedule import learning_rate
from training.token_stats import TokenStats, pack, unpack


def test_every_row_is_used_once_an_epoch_also_across_steps():
    order = DataOrder(7, prompts_per_step=3, seed=1, shuffle=True)
    rows = [row for step in range(1, 8) for row in order.rows(step)]  # 21 places: three epochs
    for epoch in range(3):
        assert sorted(rows[7 * epoch : 7 * epoch + 7]) == list(range(7))
    assert rows[:7] != rows[7:14]
    assert order.epoch(7) == 3.0


def test_epochs_are_steps_that_leave_no_row_out():
    order = DataOrder(5, prompts_per_step=2, seed=0, shuffle=True)
    assert order.steps(1) == 3
    rows = [row for step in range(1, 4) for row in order.rows(step)]
    assert set(rows) == set(range(5))
    assert order.epoch(3) == 1.2  # one row of the next epoch fills the last step
    assert order.steps(2) == 5  # ten places: nothing to fill


def test_fewer_rows_than_a_step_are_cycled_within_it():
    order = DataOrder(2, prompts_per_step=5, seed=0, shuffle=False)
    assert order.rows(1) == [0, 1, 0, 1, 0]
    assert order.rows(2) == [1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("rows", "cycle", "processes", "said"),
    [
        (3, False, 1, "4 prompts .* 3 rows; use at most 3"),
        (3, True, 1, None),
        (9, False, 5, "5 processes"),
        (9, False, 4, None),
    ],
)
def test_a_step_that_cannot_be_filled_is_refused(rows, cycle, processes, said):
    config = RunConfig.model_validate({"data": {"cycle": cycle}, "optimization": {"prompts_per_step": 4}})
    if said is None:
        check_sizes(config, rows=rows, processes=processes)
    else:
        with pytest.raises(ConfigError, match=said):
            check_sizes(config, rows=rows, processes=processes)


def test_the_order_is_a_function_of_the_seed_and_plain_without_shuffling():
    def first(seed, shuffle=True):
        return DataOrder(50, prompts_per_step=10, seed=seed, shuffle=shuffle).rows(2)

    assert first(1) == first(1)
    assert first(1) != first(2)
    assert first(1, shuffle=False) == list(range(10, 20))


def test_held_out_rows_are_chosen_once_by_the_seed():
    assert held_out_rows(5, samples=9, seed=0) == [0, 1, 2, 3, 4]
    chosen = held_out_rows(100, samples=10, seed=3)
    assert chosen == held_out_rows(100, samples=10, seed=3) == sorted(set(chosen))
    assert len(chosen) == 10


@pytest.mark.parametrize(
    ("scheduler", "rates"),
    [
        ("constant", [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [0.5, 1.0, 1.0, 0.775, 0.55, 0.325]),
        # 0.1 + 0.45 (1 + cos x) at x of 0, 1/4, 1/2 and 3/4 pi
        ("cosine", [0.5, 1.0, 1.0, 0.55 + 0.45 * math.sqrt(0.5), 0.55, 0.55 - 0.45 * math.sqrt(0.5)]),
    ],
)
def test_learning_rate_warms_up_and_decays_as_its_scheduler_says(scheduler, rates):
    config = OptimizationConfig(
        max_steps=6, warmup_steps=2, learning_rate=1.0, final_lr_ratio=0.1, lr_scheduler=scheduler
    )
    assert [learning_rate(config, step, last_step=6) for step in range(1, 7)] == pytest.approx(rates)


def test_token_statistics_come_back_up_to_half_precision():
    stats = TokenStats(np.array([5, 70_000, 2]), np.array([-0.5, -3.25, 0.0]), np.array([1.5, 0.25, 0.0]))
    back = unpack(pack(stats))
    assert back.ids.tolist() == [5, 70_000, 2]
    assert back.logp.tolist() == [-0.5, -3.25, 0.0]
    assert back.entropy.tolist() == [1.5, 0.25, 0.0]
    with pytest.raises(ValueError, match="not packed"):
        unpack("AAAA")


def test_draws_follow_the_distribution_and_never_take_what_has_no_probability():
    logp = torch.tensor([[0.5, 0.0, 0.5, 0.0]]).log().expand(4, -1)
    assert draw(logp, torch.tensor([0.0, 0.49, 0.51, 0.9999999])).tolist() == [0, 0, 2, 2]


def test_a_record_holds_finite_numbers_only():
    record = StepRecord(step=1, metrics={"reward": 0.5}, groups=[], time=0.0)
    assert parse_record(record.model_dump_json()) == record
    with pytest.raises(ValidationError):
        StepRecord(step=1, metrics={"reward": math.nan}, groups=[], time=0.0)


@pytest.mark.parametrize("name", preset_names())
def test_presets_survive_toml_and_can_start(name):
    config = load_preset(name)
    assert load_toml(dump_toml(config)) == config
    assert [f for f in check(config, access=Access(roots=())) if f.level == "error"] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[generation]\nnum_generations = 1", "generation.num_generations"),
        ('[algorithm]\nname = "grpo"\nloss_type = "dapoo"', "algorithm.loss_type"),
        ("[optimization]\nlearning_rate = nan", "optimization.learning_rate"),
        ("[optimization]\nmax_step = 3", "optimization.max_step"),
        ('[[rewards]]\nname = "accuracy"\n\n[[rewards]]\nname = "accuracy"', "rewards"),
        ('[algorithm]\nname = "rloo"\nreward_clip_range = [1.0, -1.0]', "low < high"),
        ("name = ", "TOML"),
    ],
)
def test_a_bad_configuration_is_refused_by_the_name_of_its_field(text, said):
    with pytest.raises(ConfigError, match=said):
        load_toml(text)
