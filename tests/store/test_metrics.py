"""Series keep their spikes when they are thinned out; sparklines and evaluations are read without the rest."""

from app.store import Store
from app.store.queries.metrics import EvalRow, evals, metric_names, series, sparklines, thin
from app.store.run_writes import create_run
from tests.store.rows import begin, record, start
from training.config import RunConfig
from training.records import EvalRecord, StepRecord


def bare(number: int, **metrics: float) -> StepRecord:
    """A step without completions."""
    return StepRecord(step=number, metrics=metrics, groups=[], time=1.0)


def test_series_are_points_in_the_order_of_steps(store: Store, run_id: int, config: RunConfig):
    with store.write() as session:
        other = create_run(session, config)
    for each, sign in ((run_id, 1), (other, -1)):
        begin(store, each)
        record(store, each, [start(), *(bare(n, reward=sign * n / 4, loss=float(n)) for n in (1, 2, 3))])
    with store.read() as session:
        assert metric_names(session, run_id) == ["loss", "reward"]
        assert series(session, run_id, ["reward", "no such"]) == {
            "reward": [(1, 0.25), (2, 0.5), (3, 0.75)],
            "no such": [],
        }
        assert series(session, other, ["reward"]) == {"reward": [(1, -0.25), (2, -0.5), (3, -0.75)]}
        assert metric_names(session, 999) == []
        assert series(session, run_id, []) == {}


def test_a_short_series_is_whole():
    points = [(n, float(n)) for n in range(10)]
    assert thin(points, 10) == points
    assert thin([], 10) == []


def test_a_thinned_series_keeps_its_ends_and_every_spike():
    points = [(n, 0.0) for n in range(10_000)]
    points[4321], points[777] = (4321, 9.0), (777, -9.0)
    kept = thin(points, 100)
    assert len(kept) <= 100
    assert kept == sorted(kept)
    assert {points[0], points[-1], points[4321], points[777]} <= set(kept)
    assert thin(points, 2) == [points[0], points[-1]]


def test_the_store_thins_out(store: Store, run_id: int):
    begin(store, run_id)
    record(store, run_id, [start(), *(bare(n, reward=float(n == 33)) for n in range(1, 101))])
    with store.read() as session:
        points = series(session, run_id, ["reward"], max_points=10)["reward"]
    assert len(points) <= 10
    assert (33, 1.0) in points


def test_a_sparkline_has_few_points_spread_over_all_steps(store: Store, config: RunConfig):
    with store.write() as session:
        short, long, new = (create_run(session, config) for _ in range(3))
    for run_id, count in ((short, 3), (long, 400)):
        begin(store, run_id)
        record(store, run_id, [start(), *(bare(n, reward=float(n)) for n in range(1, count + 1))])
    with store.read() as session:
        lines = sparklines(session, {short: 3, long: 400, new: 0})
    assert (lines[short], lines[new]) == ([1.0, 2.0, 3.0], [])
    assert (len(lines[long]), lines[long][0], lines[long][-1]) == (32, 1.0, 400.0)
    assert lines[long] == sorted(lines[long])


def test_the_first_and_the_newest_evaluation(store: Store, run_id: int):
    begin(store, run_id)
    made = [EvalRecord(step=n, metrics={"eval_accuracy": n / 100, "eval_reward": 0.5}, time=1.0) for n in (0, 5, 9)]
    record(store, run_id, [start(), made[0], bare(1, reward=0.5), made[1], made[2]])
    with store.read() as session:
        assert evals(session, run_id) == [
            EvalRow(0, {"eval_accuracy": 0.0, "eval_reward": 0.5}),
            EvalRow(9, {"eval_accuracy": 0.09, "eval_reward": 0.5}),
        ]
        assert evals(session, 999) == []


def test_an_evaluation_that_is_made_again_replaces_the_first(store: Store, run_id: int):
    begin(store, run_id)
    record(store, run_id, [start(), *(EvalRecord(step=0, metrics={"eval_accuracy": x}, time=1.0) for x in (0.1, 0.2))])
    with store.read() as session:
        assert evals(session, run_id) == [EvalRow(0, {"eval_accuracy": 0.2})]
