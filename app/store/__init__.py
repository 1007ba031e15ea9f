"""The record of runs: SQL tables, image files, and the typed functions that write and read them."""

from app.store.errors import BadCursor, DatabaseUnusable, IllegalMove, MediaError, StaleAttempt
from app.store.media import MediaFile, MediaStore, StoredImage
from app.store.opening import Store, open_store
from app.store.queries.pages import Page
from app.store.states import FINAL, LEGAL_MOVES, OWNED, RunState

__all__ = [
    "FINAL",
    "LEGAL_MOVES",
    "OWNED",
    "BadCursor",
    "DatabaseUnusable",
    "IllegalMove",
    "MediaError",
    "MediaFile",
    "MediaStore",
    "Page",
    "RunState",
    "StaleAttempt",
    "Store",
    "StoredImage",
    "open_store",
]
