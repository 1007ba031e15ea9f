"""`python -m tests.benchmarks.vs_trl`: whole training steps of TRL 1.16.0 and of ours, the same work, CPU time.

Both trainers run in this process with one thread, in turns; the first step of each is left out.  Before any ratio is
printed, both compute the loss of the same completions: if the losses differ, there is no ratio.
"""

import argparse
import contextlib
import copy
import io
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from tests.benchmarks import ours, theirs
from tests.benchmarks.workload import Setting, build_model, processor_and_config
from tests.parity.whole_models import peers_loss, recorded, run_config
from training.algorithms import ALGORITHMS
from training.logprobs import shared_scores
from training.policy import make_policy
from training.ranks import Ranks
from training.update import update


def settings() -> Iterator[Setting]:
    for algorithm in ("grpo", "rloo"):
        yield Setting("a: 64 image tokens", 224, 1, 32, 8, algorithm)
        for group in (4, 8, 16):
            yield Setting("b: 256 image tokens", 448, 1, 32, group, algorithm)
        yield Setting("c: two images of 256", 448, 2, 32, 8, algorithm)
        yield Setting("d: text-heavy", 224, 1, 128, 8, algorithm)


@dataclass(frozen=True, slots=True)
class Row:
    """CPU seconds a step, medians over all turns; `spread` is the largest over the smallest step."""

    setting: Setting
    theirs: float
    ours: float
    ratio: float
    their_spread: float
    our_spread: float
    our_phases: dict[str, float]
    their_phases: dict[str, float]


def measure(setting: Setting, *, turns: int, steps: int) -> Row:
    """`turns` runs of each, alternating, of `steps` steps after a first one that is not counted."""
    mine, peers, my_phases, peer_phases = [], [], [], []
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            run = ours.run(setting, Path(folder), steps=steps + 1)
            mine += run.seconds[1:]
            my_phases += [
                {k[5:]: v for k, v in metrics.items() if k.startswith("time/")} for metrics in run.metrics[1:]
            ]
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            peer = theirs.run(setting, Path(folder), steps=steps + 1)
            peers += peer.seconds[1:]
            peer_phases.append({name: seconds / (steps + 1) for name, seconds in peer.phases.items()})
    return Row(
        setting,
        theirs=statistics.median(peers),
        ours=statistics.median(mine),
        ratio=statistics.median(peers) / statistics.median(mine),
        their_spread=max(peers) / min(peers),
        our_spread=max(mine) / min(mine),
        our_phases=_medians(my_phases),
        their_phases=_medians(peer_phases),
    )


def _medians(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(statistics.median(row[name] for row in rows), 4) for name in rows[0]}


def loss_gap(algorithm: str) -> float:
    """Relative difference of the two losses on the same completions of the benchmark's model."""
    policy = make_policy(build_model().train(), processor_and_config()[0])
    policy = replace(policy, forbidden_ids=policy.forbidden_ids[:0])
    experience = replace(recorded(policy), ref_logp_BT=None)
    config = run_config({"name": algorithm, "beta": 0.0} | ({"loss_type": "grpo"} if algorithm == "grpo" else {}))
    theirs = peers_loss(replace(policy, model=copy.deepcopy(policy.model)), experience, config).item()
    optimizer = torch.optim.SGD(policy.model.parameters(), lr=0.0)
    updated = update(
        policy, optimizer, ALGORITHMS[algorithm], shared_scores, config, experience,
        ranks=Ranks(cpu=True), budget=None, seed=0,
    )  # fmt: skip
    return abs(updated.loss - theirs) / abs(theirs)


def line_of(row: Row) -> str:
    what = f"{row.setting.name:22} {row.setting.algorithm} G={row.setting.num_generations:<3}"
    spread = f"(spread {row.their_spread:.2f}, {row.our_spread:.2f})"
    return f"{what} TRL {row.theirs:7.2f} s  ours {row.ours:6.2f} s  ratio {row.ratio:5.2f}  {spread}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="settings whose name or algorithm contains this")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2, help="steps of a turn that count")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="one small setting, one step: does it work?")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    for algorithm in ("grpo", "rloo"):
        if (gap := loss_gap(algorithm)) > 1e-4:
            print(f"{algorithm}: the losses of the same completions differ by {gap:.1e}: no ratio", file=sys.stderr)
            return 1
    if args.smoke:
        chosen, args.turns, args.steps = [Setting("smoke", 56, 1, 4, 2, "grpo")], 1, 1
    else:
        chosen = [s for s in settings() if args.only in f"{s.name} {s.algorithm} G={s.num_generations}"]
    for setting in chosen:
        row = measure(setting, turns=args.turns, steps=args.steps)
        if args.json:
            print(json.dumps(asdict(row) | {"image_tokens": setting.image_tokens}), flush=True)
        else:
            print(line_of(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
