"""Records as a trainer writes them, with real images."""

import hashlib
import io
from collections.abc import Sequence

from PIL import Image

from app.store import MediaStore, Store
from app.store.ingest import Cursor, cursor, ingest
from app.store.run_writes import Owner, claim, started
from training.records import (
    AnyRecord,
    CompletionRecord,
    GroupRecord,
    ImageRecord,
    RewardValue,
    SampleRecord,
    StartRecord,
    StepRecord,
)

OWNER = Owner(worker="w1", host="here", pid=1, pid_started=1.0, boot_id="b")


def picture(colour: str, *, size: tuple[int, int] = (32, 24), format: str = "PNG") -> bytes:
    """An image of one colour."""
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, format)
    return buffer.getvalue()


def sample(text: str, *colours: str, row: int = 0) -> SampleRecord:
    """A prompt that shows an image of each colour."""
    images = [
        ImageRecord(
            sha256=hashlib.sha256(picture(colour)).hexdigest(),
            width=32,
            height=24,
            format="png",
            bytes=len(picture(colour)),
        )
        for colour in colours
    ]
    content = [*({"type": "image"} for _ in colours), {"type": "text", "text": text}]
    return SampleRecord(
        key=hashlib.sha256(repr((text, colours)).encode()).hexdigest(),
        row=row,
        messages=[{"role": "user", "content": content}],
        images=images,
        columns={"answer": text, "kind": "colour"},
    )


def completion(index: int, text: str, reward: float | None = 0.0, *, num_tokens: int = 3) -> CompletionRecord:
    """A completion with one reward function, accuracy."""
    value = RewardValue(name="accuracy", value=reward, error="no answer" if reward is None else None, parsed=text[:10])
    return CompletionRecord(
        index=index,
        text=text,
        num_tokens=num_tokens,
        finish_reason="stop",
        rewards=[value],
        reward=reward,
        advantage=0.5 - index,
    )


def group(prompt: SampleRecord, *texts_and_rewards: tuple[str, float | None]) -> GroupRecord:
    members = [completion(index, text, reward) for index, (text, reward) in enumerate(texts_and_rewards)]
    return GroupRecord(sample=prompt, completions=members)


def step(number: int, *groups: GroupRecord, **metrics: float) -> StepRecord:
    """A training step; its groups default to one of two completions, `right N` and `wrong N`."""
    made = groups or (group(sample("red?", "red"), (f"right {number}", 1.0), (f"wrong {number}", 0.0)),)
    return StepRecord(step=number, metrics=metrics or {"reward": number / 10}, groups=list(made), time=100.0 + number)


def start(*, attempt: int = 1, resumed: int | None = None, max_steps: int = 100) -> StartRecord:
    return StartRecord(attempt=attempt, resumed_from_step=resumed, max_steps=max_steps, time=100.0)


def put_images(media: MediaStore, *colours: str) -> None:
    for colour in colours:
        media.put_bytes(picture(colour), format="png")


def begin(store: Store, run_id: int) -> int:
    """Claim and start a run; the attempt."""
    with store.write() as session:
        taken = claim(session, run_id, owner=OWNER, lease_seconds=60)
        assert taken is not None
        started(session, run_id, taken.attempt)
    return taken.attempt


def record(store: Store, run_id: int, records: Sequence[AnyRecord], *, attempt: int = 1) -> None:
    """Store records right after what is stored."""
    put_images(store.media, "red", "green", "blue")
    with store.write() as session:
        at = cursor(session, run_id)
        ingest(session, run_id, attempt, records, Cursor(attempt, at.offset + 100), store.media)
