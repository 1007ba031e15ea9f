"""Stores prompts and images that no run has shown before; both are shared, and keyed by their content."""

from collections.abc import Collection, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store.clock import now
from app.store.errors import MediaError
from app.store.media import MediaStore
from app.store.tables import Image, Sample, SampleImage
from app.store.upserts import insert_or_ignore
from training.records import AnyRecord, ImageRecord, SampleRecord, StepRecord

_KEYS_A_QUERY = 500


def store_prompts(session: Session, records: Sequence[AnyRecord], media: MediaStore) -> dict[str, int]:
    """The id of every sample that the records mention, by key.  Raises MediaError when an image file is missing.

    All of a batch at once and sorted by key: two runs that store the same prompts never wait for each other in turn.
    """
    samples = {
        group.sample.key: group.sample
        for record in records
        if isinstance(record, StepRecord)
        for group in record.groups
    }
    found = _known(session, samples)
    missing = sorted(samples.keys() - found.keys())
    if missing:
        new = [samples[key] for key in missing]
        _store_images(session, new, media)
        found |= _store_samples(session, new)
    return found


def _store_images(session: Session, samples: Sequence[SampleRecord], media: MediaStore) -> None:
    images: dict[str, ImageRecord] = {image.sha256: image for sample in samples for image in sample.images}
    for sha256 in images:
        if not media.has(sha256):
            raise MediaError(f"the image {sha256} is not in the media store; put it there before its records")
    time = now(session)
    insert_or_ignore(session, Image, [{**images[sha256].model_dump(), "created_at": time} for sha256 in sorted(images)])


def _store_samples(session: Session, samples: Sequence[SampleRecord]) -> dict[str, int]:
    rows = [{"key": sample.key, "messages": sample.messages, "columns": sample.columns} for sample in samples]
    insert_or_ignore(session, Sample, rows)
    ids = _known(session, [sample.key for sample in samples])
    shown = [
        {"sample_id": ids[sample.key], "position": position, "sha256": image.sha256}
        for sample in samples
        for position, image in enumerate(sample.images)
    ]
    insert_or_ignore(session, SampleImage, shown)
    return ids


def _known(session: Session, keys: Collection[str]) -> dict[str, int]:
    wanted, found = list(keys), {}
    for start in range(0, len(wanted), _KEYS_A_QUERY):
        some = wanted[start : start + _KEYS_A_QUERY]
        found |= dict(session.execute(select(Sample.key, Sample.id).where(Sample.key.in_(some))).all())
    return found
