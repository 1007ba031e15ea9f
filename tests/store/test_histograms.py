"""Histograms count what was scored, whatever the range."""

import math

import pytest

from app.store import Store
from app.store.histograms import BINS, Histogram, histogram
from app.store.queries.metrics import HistogramRow, histograms
from tests.store.rows import begin, group, record, sample, start, step


def test_rewards_of_zero_and_one():
    found = histogram([0.0, 0.0, 1.0, None])
    assert found == Histogram(3, 1, pytest.approx(1 / 3), pytest.approx(math.sqrt(2) / 3), 0.0, 1.0, [2, *[0] * 18, 1])


def test_bins_are_of_equal_width_and_the_largest_value_is_in_the_last():
    found = histogram([number / BINS for number in range(BINS + 1)])
    assert found.bins == [1] * (BINS - 1) + [2]


def test_equal_values_stand_in_one_bin():
    assert histogram([0.25] * 5) == Histogram(5, 0, 0.25, 0.0, 0.25, 0.25, [5])


@pytest.mark.parametrize("values", [[], [None], [math.nan, math.inf]])
def test_nothing_scored_has_no_bins(values: list[float | None]):
    assert histogram(values) == Histogram(0, len(values), None, None, None, None, [])


@pytest.mark.parametrize("values", [[-1.7e308, 1.7e308], [1.0, math.nextafter(1.0, 2.0)], [0.0, 5e-324]])
def test_extreme_ranges_are_counted_whole(values: list[float]):
    found = histogram(values)
    assert (found.scored, sum(found.bins), found.low, found.high) == (2, 2, *values)


def test_a_step_keeps_one_histogram_for_the_total_and_one_for_each_reward(store: Store, run_id: int):
    begin(store, run_id)
    made = [group(sample("a"), ("x", 1.0), ("y", 0.0)), group(sample("b"), ("z", None), ("w", 1.0))]
    record(store, run_id, [start(), step(1, *made), step(2), step(3)])
    with store.read() as session:
        total = histograms(session, run_id)
        assert [row.step for row in total] == [1, 2, 3]
        assert [row.step for row in histograms(session, run_id, first=2, last=2)] == [2]
        assert histograms(session, run_id, "rewards/accuracy") == total
        assert histograms(session, run_id, "rewards/other") == []
    mean, std = pytest.approx(2 / 3), pytest.approx(math.sqrt(2) / 3)
    assert total[0] == HistogramRow(1, 3, 1, mean, std, 0.0, 1.0, [1, *[0] * 18, 2])
