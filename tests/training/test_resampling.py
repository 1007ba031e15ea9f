"""Dynamic sampling: which groups give way, to which rows, and what stays together."""

import pytest
import torch

from training.config import GRPOConfig
from training.data_order import DataOrder
from training.generation import Completions
from training.records import RewardValue
from training.resampling import resample
from training.rollouts import Rollout

PAD = 9


def rollout(names: str, rewards: list[list[list[float]]], *, length: int = 1) -> Rollout:
    """Groups named by a letter each, with the values of their completions' reward functions."""
    rows = [values for group in rewards for values in group]
    shape = (len(rows), length)
    codes = [ord(name) for name, group in zip(names, rewards, strict=True) for _ in group]
    return Rollout(
        samples=list(names),
        prompts=[f"prompt {name}" for name in names],
        completions=Completions(
            ids_BT=torch.tensor(codes)[:, None].expand(shape),
            mask_BT=torch.ones(shape, dtype=torch.bool),
            logp_BT=-torch.tensor(codes, dtype=torch.float32)[:, None].expand(shape),
            entropy_BT=torch.ones(shape),
            ended_B=torch.tensor([code % 2 == 0 for code in codes]),
        ),
        texts=[chr(code) for code in codes],
        rewards=[[RewardValue(name=str(k), value=value) for k, value in enumerate(values)] for values in rows],
        weights_K=torch.ones(len(rows[0]), dtype=torch.float64),
    )


def same(value: float) -> list[list[float]]:
    return [[value], [value]]


MIXED = [[0.0], [1.0]]


def test_groups_without_signal_are_replaced_with_all_that_belongs_to_them():
    asked = []

    def further(number, places):
        asked.append((number, list(places)))
        return {1: rollout("xy", [same(1.0), MIXED], length=3), 2: rollout("z", [MIXED], length=2)}[number]

    first = rollout("abc", [same(0.0), MIXED, same(1.0)])
    result = resample(first, GRPOConfig(dynamic_sampling_rounds=5), further, pad_id=PAD)
    assert asked == [(1, [0, 2]), (2, [0])]
    assert result.samples == ["z", "b", "y"]
    assert result.prompts == ["prompt z", "prompt b", "prompt y"]
    assert result.texts == list("zzbbyy")
    assert result.extra_groups == 3
    assert [[v.value for v in row] for row in result.rewards] == [[0.0], [1.0]] * 3
    done, z, b, y = result.completions, ord("z"), ord("b"), ord("y")
    assert done.mask_BT.sum(1).tolist() == [2, 2, 1, 1, 3, 3]
    assert done.ids_BT.tolist() == [[z, z, PAD]] * 2 + [[b, PAD, PAD]] * 2 + [[y, y, y]] * 2
    assert done.logp_BT[:, 0].tolist() == [-z, -z, -b, -b, -y, -y]
    assert done.ended_B.tolist() == [True, True, True, True, False, False]


def test_a_group_stays_where_the_rounds_found_none_with_a_signal():
    def further(number, places):
        return rollout("x", [same(0.5)])

    result = resample(rollout("ab", [same(0.0), MIXED]), GRPOConfig(dynamic_sampling_rounds=3), further, pad_id=PAD)
    assert result.samples == ["a", "b"]
    assert result.extra_groups == 3


@pytest.mark.parametrize(("aggregation", "kept"), [("sum_then_normalize", False), ("normalize_then_sum", True)])
def test_equal_totals_of_unequal_rewards_are_a_signal_where_each_is_compared(aggregation, kept):
    """1 + 0 and 0 + 1: nothing to learn from the sum, but from each."""

    def further(number, places):
        return rollout("x", [[[1.0, 1.0], [0.0, 0.0]]])

    config = GRPOConfig(dynamic_sampling_rounds=1, multi_objective_aggregation=aggregation)
    result = resample(rollout("a", [[[1.0, 0.0], [0.0, 1.0]]]), config, further, pad_id=PAD)
    assert (result.samples == ["a"]) is kept


def test_further_rows_are_others_than_the_steps_own_and_each_comes_once():
    order = DataOrder(20, prompts_per_step=4, seed=3, shuffle=True)
    own = order.rows(2)
    further = [row for number in (1, 2, 3, 4) for row in order.further_rows(2, number)]
    assert sorted(own + further) == list(range(20))
    # asked for in any order, and by a resumed run, they are the same; other steps have others
    fresh = DataOrder(20, prompts_per_step=4, seed=3, shuffle=True)
    assert fresh.further_rows(2, 3) == further[8:12]
    large = DataOrder(10_000, prompts_per_step=4, seed=3, shuffle=True)
    assert large.further_rows(2, 1) != large.further_rows(3, 1) != large.further_rows(3, 2)


def test_further_rows_come_again_where_the_data_has_no_more():
    order = DataOrder(5, prompts_per_step=3, seed=0, shuffle=False)
    assert {row for number in (1, 2) for row in order.further_rows(1, number)} == {3, 4}
    whole = DataOrder(3, prompts_per_step=3, seed=0, shuffle=False)
    assert sorted(whole.further_rows(1, 1)) == [0, 1, 2]
