"""Full-text indexes over completions: FTS5 with triggers on SQLite, GIN over an expression on PostgreSQL."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

# everything in ASCII that is neither letter nor digit becomes a space, so that PostgreSQL splits where FTS5 does
WORDS = (
    "to_tsvector('simple'::regconfig, translate(text, "
    r"""'!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', '                                '))"""
)

SQLITE = (
    "CREATE VIRTUAL TABLE completion_texts USING fts5("
    "text, content='completion_bodies', content_rowid='completion_id', tokenize=\"unicode61 remove_diacritics 0\")",
    "CREATE TRIGGER completion_texts_insert AFTER INSERT ON completion_bodies BEGIN "
    "INSERT INTO completion_texts(rowid, text) VALUES (new.completion_id, new.text); END",
    "CREATE TRIGGER completion_texts_delete AFTER DELETE ON completion_bodies BEGIN "
    "INSERT INTO completion_texts(completion_texts, rowid, text) VALUES ('delete', old.completion_id, old.text); END",
    "INSERT INTO completion_texts(completion_texts) VALUES ('rebuild')",
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(sa.text(f"CREATE INDEX ix_completion_texts ON completion_bodies USING gin ({WORDS})"))
        return
    for statement in SQLITE:
        op.execute(statement)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_index("ix_completion_texts", "completion_bodies")
        return
    for statement in (
        "DROP TRIGGER completion_texts_delete",
        "DROP TRIGGER completion_texts_insert",
        "DROP TABLE completion_texts",
    ):
        op.execute(statement)
