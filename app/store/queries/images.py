"""Reads what is known of an image."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store.media import StoredImage
from app.store.tables import Image


def get_image(session: Session, sha256: str) -> StoredImage | None:
    """The image with this content hash, or None when no prompt shows one."""
    columns = select(Image.sha256, Image.width, Image.height, Image.format, Image.bytes)
    row = session.execute(columns.where(Image.sha256 == sha256)).one_or_none()
    return None if row is None else StoredImage(*row)
