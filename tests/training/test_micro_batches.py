"""The plan of micro-batches: every completion once, within the budget, like lengths together."""

import pytest

from training.micro_batches import MicroBatch, padded_tokens, plan

# three prompts of 10, 30 and 20 tokens with two completions each
PROMPTS = [10, 30, 20]
COMPLETIONS = [1, 4, 5, 3, 2, 2]


def costs(batches, prompts, completions):
    return [padded_tokens([prompts[p] for p in b.prompts], [completions[r] for r in b.rows]) for b in batches]


def test_without_a_budget_a_step_is_one_micro_batch_in_its_own_order():
    assert plan(PROMPTS, COMPLETIONS, None) == (MicroBatch((0, 1, 2), (0, 1, 2, 3, 4, 5)),)
    assert padded_tokens(PROMPTS, COMPLETIONS) == 3 * 30 + 6 * 5


def test_longest_prompts_come_first_and_like_lengths_together():
    # 30 + 2*5 = 40 fills the first; 2*20 + 4*4 = 56 would not fit 40, 20 + 2*2 = 24 and 10 + 2*4 = 18 do
    assert plan(PROMPTS, COMPLETIONS, 40) == (
        MicroBatch((1,), (2, 3)),
        MicroBatch((2,), (4, 5)),
        MicroBatch((0,), (0, 1)),
    )
    assert plan(PROMPTS, COMPLETIONS, 56) == (MicroBatch((1,), (2, 3)), MicroBatch((2, 0), (4, 5, 0, 1)))


def test_a_group_over_the_budget_is_split_and_its_prompt_repeated():
    # 100 + 2*10 = 120 fits, 100 + 3*10 does not; sorted by length, so the two short ones share the last part
    batches = plan([100], [10, 1, 10, 10, 1], 120)
    assert batches == (MicroBatch((0,), (0, 2)), MicroBatch((0,), (1, 3)), MicroBatch((0,), (4,)))
    assert costs(batches, [100], [10, 1, 10, 10, 1]) == [120, 120, 101]


@pytest.mark.parametrize("budget", [1, 17, 40, 77, 200, 10_000])
def test_every_completion_stands_in_one_micro_batch_beside_its_prompt(budget):
    prompts = [7, 31, 12, 31, 5]
    completions = [(3 * i) % 11 for i in range(5 * 4)]  # empty ones are legal
    batches = plan(prompts, completions, budget)
    assert sorted(row for b in batches for row in b.rows) == list(range(20))
    for batch, cost in zip(batches, costs(batches, prompts, completions), strict=True):
        each = len(batch.rows) // len(batch.prompts)
        assert [row // 4 for row in batch.rows] == [p for p in batch.prompts for _ in range(each)]
        assert cost <= budget or len(batch.rows) == 1


def test_the_smallest_budget_leaves_one_completion_each():
    assert [len(b.rows) for b in plan(PROMPTS, COMPLETIONS, 1)] == [1] * 6
