"""Text and numbers that databases refuse or mangle come through the doors whole or marked."""

import math

import pytest

from app.store import Store
from app.store.doors import LONGEST_LINE, LONGEST_TEXT, clean_json, clean_text, finite
from app.store.queries.completions import groups, list_completions
from app.store.queries.logs import events, log_lines
from app.store.queries.metrics import histograms, metric_names, series
from app.store.queries.runs import get_run, list_runs
from app.store.run_writes import add_event, add_log_lines
from tests.store.rows import begin, completion, group, record, sample, start, step
from training.records import GroupRecord, RewardValue, StepRecord

HOSTILE = "a\0b\ud800c\udfffd 😀 \u202e \x1b[31m"
CLEAN = "a\ufffdb\ufffdc\ufffdd 😀 \u202e \x1b[31m"


def test_the_text_door():
    assert clean_text(HOSTILE) == CLEAN
    assert clean_text("plain") == "plain"
    assert clean_text("abcdef", longest=6) == "abcdef"
    assert clean_text("abcdefg", longest=6) == "abcde…"


def test_the_number_door():
    assert [finite(value) for value in (1.5, 2, None, math.nan, math.inf, -math.inf)] == [
        1.5,
        2,
        None,
        None,
        None,
        None,
    ]


def test_documents_go_through_both_doors():
    document = {"x\0": [math.nan, 1.5, HOSTILE, None, True, 2**80, ("t",)], "n": {"m": -math.inf}}
    assert clean_json(document) == {"x\ufffd": [None, 1.5, CLEAN, None, True, 2**80, ["t"]], "n": {"m": None}}


def test_hostile_text_is_stored_everywhere(store: Store, run_id: int):
    begin(store, run_id)
    prompt = sample("q").model_copy(update={"columns": {"answer": HOSTILE, HOSTILE: [HOSTILE]}})
    member = completion(0, HOSTILE).model_copy(
        update={"rewards": [RewardValue(name=f"r{HOSTILE}", value=None, error=HOSTILE, parsed=HOSTILE)]}
    )
    made = step(1, GroupRecord(sample=prompt, completions=[member]), **{f"m{HOSTILE}": 1.0})
    record(store, run_id, [start(), made])
    with store.write() as session:
        add_log_lines(session, run_id, 1, [HOSTILE, "", "x" * 10_000])
        add_event(session, run_id, level="info", code="c", message=HOSTILE)
    with store.read() as session:
        (found,) = groups(session, run_id).items
        lines = log_lines(session, run_id)
        assert found.sample.columns == {"answer": CLEAN, CLEAN: [CLEAN]}
        (row,) = found.completions
        assert row.text == CLEAN
        assert [(r.name, r.error, r.parsed) for r in row.rewards] == [(f"r{CLEAN}", CLEAN, CLEAN)]
        assert metric_names(session, run_id) == [f"m{CLEAN}"]
        assert [line.text for line in lines] == [CLEAN, "", "x" * (LONGEST_LINE - 1) + "…"]
        assert events(session, run_id)[-1].message == CLEAN
        assert [row.text for row in list_completions(session, run_id, query="a\0b").items] == [CLEAN]
        list_runs(session, text=HOSTILE, project=HOSTILE)


def test_what_is_not_finite_is_missing_with_a_reason(store: Store, run_id: int):
    begin(store, run_id)
    strange = RewardValue.model_construct(name="accuracy", value=math.nan, error=None, parsed=None)
    members = [
        completion(0, "a").model_copy(update={"rewards": [strange], "reward": math.inf, "advantage": math.nan}),
        completion(1, "b", 0.5),
    ]
    made = StepRecord.model_construct(
        kind="step",
        step=1,
        metrics={"reward": math.nan, "loss": -math.inf, "kl": 0.5},
        groups=[GroupRecord.model_construct(sample=sample("q"), completions=members)],
        time=1.0,
    )
    record(store, run_id, [start(), made])
    with store.read() as session:
        (found,) = groups(session, run_id).items
        run = get_run(session, run_id)
        assert series(session, run_id, ["kl", "loss", "reward"]) == {"kl": [(1, 0.5)], "loss": [], "reward": []}
        (spread,) = histograms(session, run_id, "rewards/accuracy")
    row = found.completions[0]
    assert (row.reward, row.advantage) == (None, None)
    assert [(r.value, r.error) for r in row.rewards] == [(None, "the value is not finite: nan")]
    assert (found.reward_mean, found.zero_signal) == (0.5, True)
    assert (spread.scored, spread.missing, spread.mean) == (1, 1, 0.5)
    assert run is not None
    assert run.reward is None


def test_a_very_long_completion_is_cut_and_says_so(store: Store, run_id: int):
    begin(store, run_id)
    exact, longer = "x" * LONGEST_TEXT, "y" * (LONGEST_TEXT + 1)
    record(store, run_id, [start(), step(1, group(sample("q"), (exact, 0.0), (longer, 0.0)))])
    with store.read() as session:
        whole, cut = list_completions(session, run_id, descending=False).items
    assert (whole.truncated, whole.text == exact) == (False, True)
    assert (cut.truncated, len(cut.text), cut.text[-2:]) == (True, LONGEST_TEXT, "y…")


@pytest.mark.parametrize("letter", ["a", "я", "漢", "😀"])
def test_the_longest_text_of_many_words_fits_the_index(store: Store, run_id: int, letter: str):
    begin(store, run_id)
    words = " ".join(f"{letter}{number}" for number in range(40_000))[:LONGEST_TEXT]
    record(store, run_id, [start(), step(1, group(sample("q"), (words, 0.0)))])
    with store.read() as session:
        assert len(list_completions(session, run_id, query=f"{letter}20000").items) == 1
