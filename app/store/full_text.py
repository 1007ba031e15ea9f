"""Full-text search: the same words find the same completions on SQLite (FTS5) and PostgreSQL (GIN).

Both indexes split a text at every sign and fold case.  A search text is words that must all occur, never a query
language.  The indexes are made by migration 0003, which holds its own copy of WORDS.
"""

import re
import string

from sqlalchemy import BigInteger, Select, column, literal_column, select, table, text
from sqlalchemy.orm import Session

from app.store.doors import clean_text
from app.store.tables import CompletionBody

# PostgreSQL's parser would take <b>, a/b and x@y.z for tags, paths and addresses; FTS5 splits at all of these signs
_SIGNS = string.punctuation.replace("'", "''")
WORDS = f"to_tsvector('simple'::regconfig, translate(text, '{_SIGNS}', '{' ' * len(string.punctuation)}'))"

_BETWEEN_WORDS = re.compile(r"[\W_]+")


def matching(session: Session, query: str, *, low: int, high: int) -> Select[int]:
    """Ids from `low` to `high`, both included, of completions that hold every word of the query.

    The range is what makes it fast: a common word stands in every run.  A query of signs alone finds nothing.
    """
    words = [word for word in _BETWEEN_WORDS.split(clean_text(query)) if word]
    if session.get_bind().dialect.name == "postgresql":
        row_id, where, bound = CompletionBody.completion_id, f"{WORDS} @@ plainto_tsquery('simple', :words)", words
    else:
        row_id = table("completion_texts", column("rowid", BigInteger)).c.rowid
        where, bound = "completion_texts MATCH :words", [f'"{word}"' for word in words]
    condition = text(where).bindparams(words=" ".join(bound)) if words else literal_column("1 = 0")
    return select(row_id.label("id")).where(condition, row_id >= low, row_id <= high)
