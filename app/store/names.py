"""Numbers of names: each metric and each reward is spelled once."""

from collections.abc import Collection, Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store.doors import clean_text
from app.store.tables import Name
from app.store.tables.metrics import LONGEST_NAME
from app.store.upserts import insert_or_ignore


def name_ids(session: Session, names: Collection[str]) -> dict[str, int]:
    """The number of every name; those that are new get one."""
    stored = {name: clean_text(name, longest=LONGEST_NAME) for name in names}
    found = _known(session, stored.values())
    missing = sorted(set(stored.values()) - found.keys())
    if missing:
        insert_or_ignore(session, Name, [{"name": name} for name in missing])
        found |= _known(session, missing)
    return {name: found[spelled] for name, spelled in stored.items()}


def _known(session: Session, names: Iterable[str]) -> dict[str, int]:
    rows = session.execute(select(Name.name, Name.id).where(Name.name.in_(list(names))))
    return dict(rows.all())
