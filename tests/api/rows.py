"""Real rows for tests: a dataset with images on disk, and the records of a small run put through the store's door."""

import hashlib
import io
import json
from pathlib import Path

from PIL import Image

from app.store import Store
from app.store.ingest import Cursor, ingest
from app.store.run_writes import Owner, claim, create_run, finish, started
from app.store.states import RunState
from training.config import RunConfig
from training.records import (
    CompletionRecord,
    EvalRecord,
    EventRecord,
    GroupRecord,
    ImageRecord,
    RewardValue,
    SampleRecord,
    StartRecord,
    StepRecord,
)

COLOURS = ("red", "green", "blue")


def png(colour: str) -> bytes:
    """A 32 x 24 PNG of one colour."""
    buffer = io.BytesIO()
    Image.new("RGB", (32, 24), colour).save(buffer, "PNG")
    return buffer.getvalue()


def write_dataset(directory: Path) -> Path:
    """Three questions with an image each."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = []
    for colour in COLOURS:
        (directory / f"{colour}.png").write_bytes(png(colour))
        lines.append(json.dumps({"question": "Which colour?", "image": f"{colour}.png", "answer": colour}))
    path = directory / "colours.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def finished_run(store: Store, config: RunConfig) -> int:
    """A run of two steps with two groups of two completions each, ended well."""
    images = [store.media.put_bytes(png(colour), format="png") for colour in ("red", "blue")]
    samples = [
        SampleRecord(
            key=hashlib.sha256(image.sha256.encode()).hexdigest(),
            row=row,
            messages=[{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Which colour?"}]}],
            images=[
                ImageRecord(
                    sha256=image.sha256, width=image.width, height=image.height, format="png", bytes=image.bytes
                )
            ],
            columns={"answer": answer},
        )
        for row, (image, answer) in enumerate(zip(images, ("red", "blue"), strict=True))
    ]
    records = [
        StartRecord(attempt=1, max_steps=2, time=1.0),
        EventRecord(level="warning", code="shared_path_fallback", message="the paths differ", time=2.0),
        EvalRecord(step=0, metrics={"eval_accuracy": 0.5}, time=3.0),
        *(
            StepRecord(
                step=step,
                metrics={"reward": 0.25 * step, "loss": -0.125},
                groups=[_group(sample, right=step == 2) for sample in samples],
                time=3.0 + step,
            )
            for step in (1, 2)
        ),
    ]
    with store.write() as session:
        run_id = create_run(session, config)
        owner = Owner(worker="w", host="h", pid=1, pid_started=1.0, boot_id="b")
        taken = claim(session, run_id, owner=owner, lease_seconds=60)
        assert taken is not None
        started(session, run_id, 1)
    with store.write() as session:
        ingest(session, run_id, 1, records, Cursor(attempt_file=1, offset=1), store.media)
        finish(session, run_id, 1, to=RunState.SUCCEEDED, reason="finished", exit_code=0)
    return run_id


def _group(sample: SampleRecord, *, right: bool) -> GroupRecord:
    answer = str(sample.columns["answer"])
    texts = (answer, answer if right else "<img src=x onerror=alert(1)>")
    return GroupRecord(
        sample=sample,
        completions=[
            CompletionRecord(
                index=index,
                text=text,
                num_tokens=3 + index,
                finish_reason="stop",
                rewards=[RewardValue(name="accuracy", value=float(text == answer), parsed=text)],
                reward=float(text == answer),
                advantage=0.0 if right else 0.5 - index,
            )
            for index, text in enumerate(texts)
        ],
    )
