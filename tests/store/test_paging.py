"""Pages follow each other without gap or repeat, also while rows are added, in every order."""

import base64
import itertools
import json
import random
from collections.abc import Callable

import pytest

from app.store import BadCursor, Page, Store
from app.store.queries.completions import CompletionRow, Sort, groups, list_completions, steps
from app.store.queries.pages import decode, encode
from app.store.queries.runs import list_runs
from app.store.run_writes import create_run
from tests.store.rows import begin, completion, record, sample, start, step
from training.config import RunConfig
from training.records import GroupRecord, StepRecord

STEPS, GROUPS, G = 6, 3, 4
SORTS: tuple[Sort, ...] = ("step", "reward", "num_tokens")


def random_step(number: int) -> StepRecord:
    """Twelve completions with few distinct rewards and lengths, some unscored."""
    chance = random.Random(number)
    made = []
    for place in range(GROUPS):
        rewards = [chance.choice([None, 0.0, 0.5, 1.0, -1.0]) for _ in range(G)]
        members = [
            completion(index, f"{number} {place} {index}", reward, num_tokens=chance.randint(1, 4))
            for index, reward in enumerate(rewards)
        ]
        made.append(GroupRecord(sample=sample(f"{number}-{place}"), completions=members))
    return step(number, *made)


@pytest.fixture
def filled(store: Store, run_id: int, config: RunConfig) -> int:
    """A run of six steps between two others."""
    with store.write() as session:
        later = create_run(session, config)
    for each in (run_id, later):
        begin(store, each)
        record(store, each, [start(), *(random_step(number + 1) for number in range(STEPS))])
    return run_id


def walk(page: Callable[[str | None], Page], between: Callable[[], None] = lambda: None) -> list:
    found, after = [], None
    while True:
        one = page(after)
        found += one.items
        after = one.next
        if after is None:
            return found
        assert one.items
        between()


def sort_key(sort: Sort) -> Callable[[CompletionRow], tuple]:
    if sort == "reward":
        return lambda row: (float("-inf") if row.reward is None else row.reward, row.id)
    return lambda row: (getattr(row, sort), row.id)


def test_completions_in_every_order(store: Store, filled: int):
    for sort, descending, only_step in itertools.product(SORTS, (True, False), (None, 3)):

        def page(
            after: str | None,
            limit: int = 5,
            *,
            sort: Sort = sort,
            down: bool = descending,
            step: int | None = only_step,
        ) -> Page[CompletionRow]:
            with store.read() as session:
                return list_completions(
                    session, filled, step=step, sort=sort, descending=down, after=after, limit=limit
                )

        rows = walk(page)
        assert len({row.id for row in rows}) == len(rows) == GROUPS * G * (STEPS if only_step is None else 1)
        assert rows == sorted(rows, key=sort_key(sort), reverse=descending)
        assert {row.run_id for row in rows} == {filled}
        assert page(None, limit=len(rows)).next is None


def test_a_search_is_paged_like_the_list(store: Store, filled: int):
    for sort in SORTS:

        def page(after: str | None, sort: Sort = sort) -> Page[CompletionRow]:
            with store.read() as session:
                return list_completions(session, filled, query="2", sort=sort, after=after, limit=4)

        rows = walk(page)
        expected = {(n, p, i) for n in range(1, 7) for p in range(GROUPS) for i in range(G) if 2 in (n, p, i)}
        assert {tuple(map(int, row.text.split())) for row in rows} == expected
        assert len(rows) == len(expected)
        assert rows == sorted(rows, key=sort_key(sort), reverse=True)


def test_rows_added_while_paging_shift_nothing(store: Store, filled: int):
    with store.read() as session:
        before = [row.id for row in list_completions(session, filled, limit=500).items]
    number = iter(range(STEPS + 1, 1000))

    def page(after: str | None) -> Page[CompletionRow]:
        with store.read() as session:
            return list_completions(session, filled, after=after, limit=7)

    rows = walk(page, between=lambda: record(store, filled, [random_step(next(number))]))
    assert [row.id for row in rows] == before


def test_groups_of_a_step_stand_in_their_order_and_those_of_a_run_newest_first(store: Store, filled: int):
    def all_groups(step: int | None) -> list:
        def page(after: str | None) -> Page:
            with store.read() as session:
                return groups(session, filled, step=step, after=after, limit=2)

        return walk(page)

    of_step = all_groups(3)
    assert [group.sample.messages[0]["content"][-1]["text"] for group in of_step] == ["3-0", "3-1", "3-2"]
    assert all([row.index for row in group.completions] == list(range(G)) for group in of_step)
    assert [group.step for group in all_groups(None)] == [6] * 3 + [5] * 3 + [4] * 3 + [3] * 3 + [2] * 3 + [1] * 3


def test_steps_without_rows_have_empty_pages(store: Store, filled: int):
    with store.read() as session:
        for number in (0, 7, -1):
            assert list_completions(session, filled, step=number) == Page([], None)
            assert groups(session, filled, step=number) == Page([], None)
        assert (steps(session, filled).first, steps(session, filled).last, steps(session, filled).count) == (1, 6, 6)
        assert steps(session, 999).first is None


def test_runs_newest_first(store: Store, config: RunConfig):
    with store.write() as session:
        ids = [create_run(session, config) for _ in range(7)]

    def page(after: str | None) -> Page:
        with store.read() as session:
            return list_runs(session, after=after, limit=3)

    assert [run.id for run in walk(page)] == ids[::-1]


def test_a_cursor_names_order_value_and_row():
    for value in (0.0, 1.0, -0.1, 1e300, -1.7976931348623157e308):
        assert decode(encode("reward down", value, 2**63 - 1), "reward down", kind=float) == (value, 2**63 - 1)
    for value in (0, 2**31 - 1):
        assert decode(encode("num_tokens up", value, 7), "num_tokens up") == (value, 7)


def handmade(document: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "rubbish",
        "é",
        "====",
        "\ud800",
        "a" * 400,
        handmade([]),
        handmade({"a": 1, "b": 2, "c": 3}),
        handmade("abc"),
        handmade(["step down", 0, -1]),
        handmade(["step down", 0, 2**63]),
        handmade(["step down", 0, 1.5]),
        handmade(["step down", 0, True]),
        handmade(["step down", None, 1]),
        handmade(["step down", "0", 1]),
        handmade(["step down", 2**31, 1]),
        handmade(["step down", 10**400, 1]),
        handmade(["step down", 1.5, 1]),
        handmade(["step down", float("nan"), 1]),
        handmade(["reward down", 0, 1]),
        "W" * 397,
    ],
)
def test_a_cursor_that_this_list_did_not_hand_out_is_refused(cursor: str):
    with pytest.raises(BadCursor):
        decode(cursor, "step down")


def test_a_cursor_belongs_to_one_order(store: Store, filled: int):
    with store.read() as session:
        after = list_completions(session, filled, limit=1).next
        with pytest.raises(BadCursor, match="another order"):
            list_completions(session, filled, sort="reward", after=after)


def test_extreme_cursors_are_refused_or_answered(store: Store, filled: int):
    with store.read() as session:
        for value, row_id in ((0, 0), (2**31 - 1, 2**63 - 1)):
            for sort in ("step", "num_tokens"):
                list_completions(session, filled, sort=sort, after=encode(f"{sort} down", value, row_id))
            groups(session, filled, after=encode("newest", value, row_id))
            groups(session, filled, step=1, after=encode("position", value, row_id))
        list_completions(session, filled, sort="reward", after=encode("reward down", 1.7e308, 2**63 - 1))
        list_runs(session, after=encode("id", 0, 2**31 - 1))
        with pytest.raises(BadCursor):
            list_runs(session, after=encode("id", 0, 2**31))
