"""One attempt of a run from its configuration: the entry that the command line and the worker's child use."""

import time
from pathlib import Path
from typing import Literal

import torch

from training.checkpoint_files import newest_whole
from training.config import RunConfig
from training.control import Control
from training.datasets import Access, open_dataset
from training.export import export
from training.generic import with_family
from training.model_source import model_source
from training.policy import load_policy
from training.prompt_check import check_prompts
from training.ranks import Ranks
from training.recorder import FileRecorder, ImageRecorder, Recorder, record_files
from training.records import EventRecord, PhaseRecord, ResultRecord, StartRecord
from training.rewards import build_rewards
from training.tracking import TrackioMirror
from training.trainer import Data, Trainer


def run(
    config: RunConfig, *, out: Path, attempt: int | None, control: Control, cache: Path, access: Access
) -> Literal["finished", "stopped"]:
    """Train in `out`, from its newest whole checkpoint when there is one.

    attempt: number of this attempt (default: one more than the files there).  Errors are written as a failed
    ResultRecord and raised.
    """
    out.mkdir(parents=True, exist_ok=True)
    ranks = Ranks(cpu=_device_type(config) == "cpu")
    checkpoint = newest_whole(out / "checkpoints")
    number = attempt or len(record_files(out)) + 1
    recorder = _recorder(config, out, number, cache) if ranks.is_main else ImageRecorder(out)
    step = checkpoint.step if checkpoint else 0
    try:
        recorder.record(
            StartRecord(
                attempt=number,
                resumed_from_step=checkpoint.step if checkpoint else None,
                max_steps=config.optimization.max_steps,
                time=time.time(),
            )
        )
        trainer = ranks.together(lambda: _trainer(config, recorder, ranks, out=out, cache=cache, access=access))
        if checkpoint is not None:
            trainer.restore(checkpoint)
            message = f"goes on after step {checkpoint.step}"
            recorder.record(EventRecord(code="resumed", message=message, time=time.time()))
        outcome = trainer.train(control)
        step = trainer.progress.step
        model_path = export(trainer.policy, config, out) if outcome == "finished" and ranks.is_main else None
        recorder.record(ResultRecord(outcome=outcome, step=step, model_path=model_path, time=time.time()))
        return outcome
    except Exception as error:  # the boundary of a run: whatever ended it belongs in its record
        recorder.record(ResultRecord(outcome="failed", step=step, message=str(error) or repr(error), time=time.time()))
        raise
    finally:
        recorder.close()
        ranks.close()


def _recorder(config: RunConfig, out: Path, attempt: int, cache: Path) -> Recorder:
    files = FileRecorder(out, attempt=attempt)
    if not config.tracking.trackio:
        return files
    return TrackioMirror(files, config, run_name=f"{config.name}-{out.name}", directory=cache.parent / "trackio")


def _trainer(config: RunConfig, recorder: Recorder, ranks: Ranks, *, out: Path, cache: Path, access: Access) -> Trainer:
    if config.resources.threads is not None:
        torch.set_num_threads(config.resources.threads)

    def phase(name: str, detail: str = "") -> None:
        recorder.record(PhaseRecord(name=name, detail=detail, time=time.time()))

    phase("loading", f"dataset {config.data.source}")
    held_out_split = config.evaluation.split
    train = open_dataset(config.data, access=access)
    held_out = open_dataset(config.data, split=held_out_split, access=access) if held_out_split else None
    rewards = build_rewards(config.rewards)
    path = model_source(
        config.model.path, cache=cache, access=access, progress=lambda detail: phase("warm start", detail)
    )
    several = f", in {ranks.count} processes" if ranks.count > 1 else ""
    phase("loading", f"model {config.model.path} on {ranks.device}{several}")
    policy = with_family(
        load_policy(config.model, path, device=ranks.device, parameters=config.parameters, seed=config.seed)
    )
    for dataset in filter(None, (train, held_out)):
        check_prompts(policy, dataset, config.data)
    return Trainer(config, policy, Data(train, held_out), rewards, recorder, ranks=ranks, out=out)


def _device_type(config: RunConfig) -> str:
    if config.resources.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return config.resources.device
