"""The benchmark runs; what it measures is not asserted here."""

import json

import pytest

pytest.importorskip("trl")

from tests.benchmarks.vs_trl import main


@pytest.mark.slow
def test_the_benchmark_works(capsys):
    assert main(["--smoke", "--json"]) == 0
    [line] = capsys.readouterr().out.splitlines()[-1:]
    row = json.loads(line)
    assert row["ratio"] > 0
    assert row["image_tokens"] == 4
    assert set(row["our_phases"]) >= {"encode", "generate", "update"}
    assert set(row["their_phases"]) >= {"preprocess", "generate", "forward"}
