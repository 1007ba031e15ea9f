"""Records are stored exactly once, in whole batches, by the attempt that holds the run; what is void goes."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sqlalchemy import func, select

from app.store import MediaError, RunState, StaleAttempt, Store
from app.store.ids import run_of
from app.store.ingest import Cursor, cursor, ingest
from app.store.queries.completions import get_completion, groups, list_completions, steps, token_stats
from app.store.queries.logs import events
from app.store.queries.metrics import histograms, series
from app.store.queries.runs import RunDetail, get_run
from app.store.run_writes import create_run, finish, give_back
from app.store.tables import (
    Checkpoint,
    Completion,
    CompletionBody,
    CompletionTokens,
    Group,
    Image,
    Metric,
    Reward,
    Sample,
    SampleImage,
)
from tests.store.rows import begin, completion, group, put_images, record, sample, start, step
from training.config import RunConfig
from training.records import (
    AnyRecord,
    CheckpointRecord,
    EvalRecord,
    EventRecord,
    GroupRecord,
    PhaseRecord,
    ResultRecord,
)
from training.token_stats import TokenStats, pack


def shown(store: Store, run_id: int) -> RunDetail:
    with store.read() as session:
        run = get_run(session, run_id)
    assert run is not None
    return run


def texts(store: Store, run_id: int) -> list[str]:
    """Texts of all completions, oldest first."""
    with store.read() as session:
        page = list_completions(session, run_id, descending=False, limit=1000)
    return [row.text for row in page.items]


def count(store: Store, table: type) -> int:
    with store.read() as session:
        return session.scalars(select(func.count()).select_from(table)).one()


def batch(store: Store, run_id: int, records: Sequence[AnyRecord], end: Cursor, *, attempt: int = 1) -> None:
    with store.write() as session:
        ingest(session, run_id, attempt, records, end, store.media)


def test_a_group_comes_back_as_it_was_recorded(store: Store, run_id: int):
    begin(store, run_id)
    prompt = sample("which is red?", "red", "blue", row=17)
    record(store, run_id, [start(), step(1, group(prompt, ("the first", 1.0), ("neither", None)))])
    with store.read() as session:
        (found,) = groups(session, run_id).items
    assert (found.run_id, run_of(found.id), found.step) == (run_id, run_id, 1)
    assert (found.sample.key, found.sample.row) == (prompt.key, 17)
    assert found.sample.messages == prompt.messages
    assert list(found.sample.messages[0]) == ["role", "content"]
    assert found.sample.columns == {"answer": "which is red?", "kind": "colour"}
    assert [(image.sha256, image.position) for image in found.sample.images] == [
        (prompt.images[0].sha256, 0),
        (prompt.images[1].sha256, 1),
    ]
    first, second = found.completions
    assert (first.index, first.text, first.num_tokens, first.finish_reason) == (0, "the first", 3, "stop")
    assert (first.reward, first.advantage, first.truncated) == (1.0, 0.5, False)
    assert [(r.name, r.value, r.error, r.parsed) for r in first.rewards] == [("accuracy", 1.0, None, "the first")]
    assert (second.reward, second.advantage) == (None, -0.5)
    assert [(r.value, r.error) for r in second.rewards] == [(None, "no answer")]
    assert (found.reward_mean, found.reward_std, found.zero_signal) == (1.0, 0.0, True)


def test_mean_deviation_and_signal_of_a_group(store: Store, run_id: int):
    begin(store, run_id)
    made = group(sample("a"), ("a", 1.0), ("b", 0.0), ("c", 0.0), ("d", 1.0))
    record(store, run_id, [start(), step(1, made, group(sample("b"), ("e", 0.0), ("f", 0.0)))])
    with store.read() as session:
        mixed, flat = groups(session, run_id, step=1).items
    assert (mixed.reward_mean, mixed.reward_std, mixed.zero_signal) == (0.5, 0.5, False)
    assert (flat.reward_mean, flat.reward_std, flat.zero_signal) == (0.0, 0.0, True)


def test_progress_is_shown(store: Store, run_id: int):
    begin(store, run_id)
    record(
        store, run_id, [start(max_steps=100), PhaseRecord(name="training", detail="2 prompts", max_steps=7, time=5.0)]
    )
    record(store, run_id, [step(1), step(2, group(sample("x", "red", "blue"), ("x", 0.0)))])
    run = shown(store, run_id)
    assert (run.phase, run.phase_detail) == ("training", "2 prompts")
    assert (run.step, run.max_steps, run.reward_first, run.reward) == (2, 7, 0.1, 0.2)
    assert (run.completions, run.images, run.sparkline) == (3, 2, [0.1, 0.2])
    assert run.progress_at is not None
    assert run.progress_at.timestamp() == 102.0


def test_a_batch_that_is_sent_again_is_stored_once(store: Store, run_id: int):
    begin(store, run_id)
    put_images(store.media, "red")
    for _ in range(3):
        batch(store, run_id, [start(), step(1)], Cursor(1, 500))
    batch(store, run_id, [step(2)], Cursor(1, 900))
    batch(store, run_id, [start(), step(1)], Cursor(1, 500))
    assert texts(store, run_id) == ["right 1", "wrong 1", "right 2", "wrong 2"]
    with store.read() as session:
        assert cursor(session, run_id) == Cursor(1, 900)


def test_cursors_of_a_later_file_come_after_those_of_an_earlier_one():
    assert Cursor(0, 0) < Cursor(1, 900) < Cursor(2, 100)


def test_a_batch_that_fails_leaves_nothing(store: Store, run_id: int):
    begin(store, run_id)
    put_images(store.media, "red")
    unknown = step(2, group(sample("never put", "green"), ("x", 0.0)))
    with pytest.raises(MediaError, match=unknown.groups[0].sample.images[0].sha256):
        batch(store, run_id, [start(), step(1), unknown], Cursor(1, 500))
    assert texts(store, run_id) == []
    assert count(store, Sample) == count(store, Image) == count(store, Metric) == 0
    with store.read() as session:
        assert cursor(session, run_id) == Cursor(0, 0)


def test_a_stale_attempt_is_refused(store: Store, run_id: int):
    begin(store, run_id)
    record(store, run_id, [start(), step(1)])
    with store.write() as session:
        give_back(session, run_id, 1, reason="lost", max_attempts=3)
    with pytest.raises(StaleAttempt, match="attempt 1"):  # nobody holds the run now
        record(store, run_id, [step(2)], attempt=1)
    begin(store, run_id)
    with pytest.raises(StaleAttempt, match="attempt 1"):  # another one holds it
        record(store, run_id, [step(2)], attempt=1)
    with pytest.raises(StaleAttempt, match="attempt 3"):
        record(store, run_id, [step(2)], attempt=3)
    assert texts(store, run_id) == ["right 1", "wrong 1"]


def test_nothing_is_added_to_a_run_that_has_ended(store: Store, run_id: int):
    begin(store, run_id)
    with store.write() as session:
        finish(session, run_id, 1, to=RunState.SUCCEEDED, reason="done")
    with pytest.raises(StaleAttempt):
        record(store, run_id, [step(1)])


def test_a_new_attempt_stores_what_the_last_one_left_in_its_file(store: Store, run_id: int):
    begin(store, run_id)
    put_images(store.media, "red")
    batch(store, run_id, [start(), step(1)], Cursor(1, 100))
    with store.write() as session:
        give_back(session, run_id, 1, reason="lost", max_attempts=3)
    begin(store, run_id)
    batch(store, run_id, [step(2), step(3), start(attempt=2, resumed=2), step(3)], Cursor(2, 50), attempt=2)
    assert texts(store, run_id) == [f"{kind} {number}" for number in (1, 2, 3) for kind in ("right", "wrong")]
    assert shown(store, run_id).step == 3


def test_steps_after_the_one_resumed_from_are_void(store: Store, run_id: int):
    begin(store, run_id)
    evals = [EvalRecord(step=number, metrics={"eval_accuracy": number / 10}, time=1.0) for number in (0, 4)]
    saved = [CheckpointRecord(step=number, path=f"checkpoints/{number}", bytes=1, time=1.0) for number in (2, 4)]
    green = step(3, group(sample("green?", "green"), ("g", 0.0)))
    record(store, run_id, [start(), evals[0], step(1), step(2), saved[0], green, step(4), evals[1], saved[1]])
    assert (shown(store, run_id).completions, shown(store, run_id).images) == (7, 2)
    with store.write() as session:
        give_back(session, run_id, 1, reason="lost", max_attempts=3)
    begin(store, run_id)
    record(store, run_id, [start(attempt=2, resumed=2)], attempt=2)
    run = shown(store, run_id)
    assert texts(store, run_id) == ["right 1", "wrong 1", "right 2", "wrong 2"]
    assert (run.step, run.completions, run.images, run.reward_first, run.reward) == (2, 4, 1, 0.1, 0.2)
    assert [entry.step for entry in run.evals] == [0]
    with store.read() as session:
        assert series(session, run_id, ["reward"]) == {"reward": [(1, 0.1), (2, 0.2)]}
        assert [row.step for row in histograms(session, run_id)] == [1, 2]
        assert steps(session, run_id).last == 2
        assert session.scalars(select(Checkpoint.step)).all() == [2]
    record(store, run_id, [step(3)], attempt=2)
    assert texts(store, run_id)[-2:] == ["right 3", "wrong 3"]


def test_nothing_of_a_void_step_is_left(store: Store, run_id: int):
    begin(store, run_id)
    packed = pack(TokenStats(np.array([5]), np.array([-0.5]), np.array([1.5])))
    member = completion(0, "found by its words", 1.0).model_copy(update={"tokens": packed})
    record(store, run_id, [start(), step(1, GroupRecord(sample=sample("x", "red"), completions=[member]))])
    with store.read() as session:
        assert len(list_completions(session, run_id, query="words").items) == 1
    record(store, run_id, [start(resumed=0)])
    for table in (Group, Completion, CompletionBody, CompletionTokens, Reward, Metric):
        assert count(store, table) == 0, table
    assert count(store, Sample) == count(store, Image) == count(store, SampleImage) == 1
    with store.read() as session:
        assert list_completions(session, run_id, query="words").items == []


def test_an_attempt_that_begins_anew_voids_everything(store: Store, run_id: int):
    begin(store, run_id)
    record(store, run_id, [start(), EvalRecord(step=0, metrics={"eval_accuracy": 0.5}, time=1.0), step(1)])
    record(store, run_id, [start(resumed=None)])
    run = shown(store, run_id)
    assert (run.step, run.completions, run.images, run.evals) == (0, 0, 0, [])
    assert (run.reward, run.reward_first, run.sparkline) == (None, None, [])


def test_a_step_that_is_recorded_again_replaces_the_first(store: Store, run_id: int):
    begin(store, run_id)
    record(store, run_id, [start(), step(1), step(2)])
    again = step(2, group(sample("red?", "red"), ("other", 0.5)))
    record(store, run_id, [again])
    assert texts(store, run_id) == ["right 1", "wrong 1", "other"]
    assert shown(store, run_id).completions == 3


def test_voiding_one_run_leaves_the_others(store: Store, run_id: int, config: RunConfig):
    with store.write() as session:
        neighbours = [create_run(session, config) for _ in range(2)]
    for each in (run_id, *neighbours):
        begin(store, each)
        record(store, each, [start(), step(1)])
    record(store, neighbours[0], [start(resumed=None)])
    assert [len(texts(store, each)) for each in (run_id, *neighbours)] == [2, 0, 2]


def test_prompts_and_images_are_stored_once_for_all_runs(store: Store, config: RunConfig):
    with store.write() as session:
        runs = [create_run(session, config) for _ in range(3)]
    for number, run_id in enumerate(runs):
        begin(store, run_id)
        record(store, run_id, [start(), step(1, group(sample("q", "red", row=number), ("a", 0.0))), step(2)])
    assert (count(store, Sample), count(store, Image)) == (2, 1)
    with store.read() as session:
        found = [groups(session, run_id, step=1).items[0].sample for run_id in runs]
    assert len({each.id for each in found}) == 1
    assert [each.row for each in found] == [0, 1, 2]


def test_runs_that_store_the_same_prompts_at_once_do_not_hinder_each_other(store: Store, config: RunConfig):
    prompts = [sample(f"prompt {number}", "red") for number in range(40)]
    put_images(store.media, "red")
    with store.write() as session:
        runs = [create_run(session, config) for _ in range(4)]
    for run_id in runs:
        begin(store, run_id)

    def write(place: int) -> None:
        ordered = prompts if place % 2 else prompts[::-1]
        made = [step(number + 1, *(group(each, ("a", 0.0)) for each in ordered)) for number in range(3)]
        for number, each in enumerate(made):
            batch(store, runs[place], [each], Cursor(1, number + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert count(store, Sample) == 40
    assert [shown(store, run_id).completions for run_id in runs] == [120] * 4


def test_events_and_the_result_are_stored(store: Store, run_id: int):
    begin(store, run_id)
    warning = EventRecord(level="warning", code="shared_path_fallback", message="they differ", time=50.0)
    result = ResultRecord(outcome="finished", step=1, model_path="model", time=60.0)
    record(store, run_id, [start(), step(1), warning, result])
    with store.read() as session:
        event = events(session, run_id)[-1]
    assert (event.level, event.code, event.message, event.step) == ("warning", "shared_path_fallback", "they differ", 1)
    assert event.time.timestamp() == 50.0
    assert shown(store, run_id).model_path == "model"


def test_token_statistics_come_back(store: Store, run_id: int):
    begin(store, run_id)
    stats = TokenStats(np.array([1, 2, 70_000]), np.array([-0.5, -1.0, -2.0]), np.array([0.25, 0.5, 1.0]))
    member = completion(0, "a").model_copy(update={"tokens": pack(stats)})
    record(store, run_id, [start(), step(1, GroupRecord(sample=sample("x"), completions=[member, completion(1, "b")]))])
    with store.read() as session:
        with_tokens, without = list_completions(session, run_id, descending=False).items
        found = token_stats(session, with_tokens.id)
        assert token_stats(session, without.id) is None
        assert get_completion(session, without.id) == without
        assert get_completion(session, 1) is None
    assert found is not None
    assert (found.ids.tolist(), found.logp.tolist()) == ([1, 2, 70_000], [-0.5, -1.0, -2.0])


def test_there_is_no_cursor_where_there_is_no_run(store: Store):
    with pytest.raises(LookupError, match="no run 9"), store.read() as session:
        cursor(session, 9)
