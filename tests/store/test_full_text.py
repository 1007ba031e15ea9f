"""The same words find the same completions on both databases."""

import importlib.util
from pathlib import Path

import pytest

import migrations
from app.store import Store
from app.store.full_text import WORDS
from app.store.queries.completions import list_completions
from app.store.run_writes import create_run
from tests.store.rows import begin, group, record, sample, start, step
from training.config import RunConfig

TEXTS = (
    "<think>The square is red.</think><answer>red</answer>",
    "<img src=x onerror=alert(1)>",
    "see a/b/c.png at user@example.org or https://example.org/path?q=1",
    "x_max = 3.14, y-min=-5; 1e5",
    "Größe ÉCOLE кот 漢字 naïve",
    'quote "it\'s" back\\slash `tick`',
    "reded predator",
)


@pytest.fixture
def searched(store: Store, run_id: int, config: RunConfig) -> int:
    with store.write() as session:
        other = create_run(session, config)
    for each in (run_id, other):
        begin(store, each)
        record(store, each, [start(), step(1, group(sample("q"), *((text, 0.0) for text in TEXTS)))])
    record(store, run_id, [step(2, group(sample("q"), ("a blue circle", 0.0)))])
    return run_id


FOUND = {
    "red": [0],
    "RED square": [0],
    "square circle": [],
    "answer": [0],
    "<answer>red</answer>": [0],
    "onerror": [1],
    "onerror=alert(1)": [1],
    "c.png": [2],
    "example.org": [2],
    "user path": [2],
    "x_max": [3],
    "3.14": [3],
    "-5": [3],
    "1e5": [3],
    "größe": [4],
    "GRÖSSE": [],
    "école": [4],
    "ecole": [],
    "КОТ": [4],
    "漢字": [4],
    "it's": [5],
    "back\\slash": [5],
    "tick": [5],
    "predator": [6],
    "re": [],
}
NO_SYNTAX = {
    "red NOT square": [],
    "red OR circle": [],
    "NEAR(red square)": [],
    "text:red": [],
    "pre*": [],
    "red -square": [0],
    "^square": [0],
    "red | circle": [],
    ":words red": [],
    '"': [],
    "'": [],
    "(": [],
    "{": [],
    "%": [],
    "\\": [],
}


@pytest.mark.parametrize("expected", [FOUND, NO_SYNTAX], ids=["words", "never a query language"])
def test_words_find_the_texts_that_hold_them_all(store: Store, searched: int, expected: dict[str, list[int]]):
    found = {}
    with store.read() as session:
        for query in expected:
            rows = list_completions(session, searched, query=query, descending=False).items
            found[query] = [TEXTS.index(row.text) for row in rows]
    assert found == expected


def test_signs_alone_find_nothing_and_blanks_do_not_search(store: Store, searched: int):
    with store.read() as session:
        assert list_completions(session, searched, query="!?").items == []
        assert len(list_completions(session, searched, query="  ").items) == len(TEXTS) + 1


def test_a_search_keeps_to_its_run_and_step(store: Store, searched: int):
    with store.read() as session:
        (row,) = list_completions(session, searched, query="blue").items
        assert (row.run_id, row.step) == (searched, 2)
        assert list_completions(session, searched, query="blue", step=1).items == []
        assert list_completions(session, searched + 1, query="blue").items == []


def test_the_query_asks_for_exactly_what_is_indexed():
    path = Path(migrations.__file__).parent / "versions" / "0003_full_text.py"
    spec = importlib.util.spec_from_file_location("full_text_migration", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.WORDS == WORDS
