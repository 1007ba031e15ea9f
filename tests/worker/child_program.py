"""A small program in the place of `vlmscope train`: true record files, seeded content, and ways to go wrong.

argv: directory, attempt, death pipe, steps, then what else it should do: `kill@3` (SIGKILL itself after step 3 in
attempt 1), `stumble@2` (the same after every second step of every attempt), `exit2@3`, `slow` (0.2 s a step),
`slower` (3 s a step), `deaf` (slow, and no signal stops it) or `silent` (a failure that it does not record).
"""

import os
import signal
import sys
import time
from pathlib import Path

from training.checkpoint_files import newest_whole, write_checkpoint
from training.control import Control, NeverStop, SignalControl
from training.recorder import FileRecorder
from training.records import (
    CheckpointRecord,
    CompletionRecord,
    GroupRecord,
    ResultRecord,
    RewardValue,
    SampleRecord,
    StartRecord,
    StepRecord,
)


def main() -> int:
    directory, attempt, pipe, steps, *faults = sys.argv[1:]
    out, number, last = Path(directory), int(attempt), int(steps)
    if "silent" in faults:
        raise SystemExit("no model of that name")
    if "deaf" in faults:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    control = NeverStop() if "deaf" in faults else SignalControl(death_pipe=int(pipe))
    checkpoint = newest_whole(out / "checkpoints")
    step = checkpoint.step if checkpoint else 0
    recorder = FileRecorder(out, attempt=number)
    resumed = checkpoint.step if checkpoint else None
    recorder.record(StartRecord(attempt=number, resumed_from_step=resumed, max_steps=last, time=time.time()))
    print(f"attempt {number} from step {step}", flush=True)
    while step < last:
        if control.stop_requested():
            save(out, recorder, step)
            recorder.record(ResultRecord(outcome="stopped", step=step, time=time.time()))
            return 75
        step += 1
        recorder.record(record_of(step))
        print(f"step {step}", flush=True)
        if step % 2 == 0:
            save(out, recorder, step)
        for fault in faults:
            fail(fault, number, step, recorder)
        work(control, 3.0 if "slower" in faults else 0.2 if {"slow", "deaf"} & set(faults) else 0.01)
    recorder.record(ResultRecord(outcome="finished", step=step, time=time.time()))
    return 0


def work(control: Control, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not control.stop_requested():
        time.sleep(0.01)


def fail(fault: str, attempt: int, step: int, recorder: FileRecorder) -> None:
    name, _, at = fault.partition("@")
    if (name == "stumble" and step % int(at) == 0) or (fault == f"kill@{step}" and attempt == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if name.startswith("exit") and int(at) == step:
        recorder.record(ResultRecord(outcome="failed", step=step, message="the data is wrong", time=time.time()))
        os._exit(int(name.removeprefix("exit")))


def save(out: Path, recorder: FileRecorder, step: int) -> None:
    info = write_checkpoint(out / "checkpoints", step, lambda path: (path / "weights").write_text(str(step)) and None)
    record = CheckpointRecord(step=step, path=f"checkpoints/{info.path.name}", bytes=info.bytes, time=time.time())
    recorder.record(record)


def record_of(step: int) -> StepRecord:
    """Two groups of two completions whose text names step, group and place."""
    groups = [
        GroupRecord(
            sample=SampleRecord(
                key=f"{group:064x}", row=group, messages=[{"role": "user", "content": "?"}], images=[], columns={}
            ),
            completions=[
                CompletionRecord(
                    index=index,
                    text=f"{step}/{group}/{index}",
                    num_tokens=1,
                    finish_reason="stop",
                    rewards=[RewardValue(name="accuracy", value=float(index))],
                    reward=float(index),
                    advantage=index - 0.5,
                )
                for index in range(2)
            ],
        )
        for group in range(2)
    ]
    return StepRecord(step=step, metrics={"reward": 0.5}, groups=groups, time=time.time())


if __name__ == "__main__":
    sys.exit(main())
