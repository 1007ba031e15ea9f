"""A hundred thousand completions in a second: made by the database itself, as records would take minutes."""

from sqlalchemy import insert, text
from sqlalchemy.orm import Session

from app.store import Store
from app.store.run_writes import create_run
from app.store.tables import Name
from training.config import RunConfig

STEPS, GROUPS, G = 500, 13, 8
NAMES, LINES = 10, 10_000
PER_RUN = STEPS * GROUPS * G

_NUMBERS = """
WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < {count})
"""
_STATEMENTS = (
    (
        STEPS * GROUPS,
        "INSERT INTO groups (id, run_id, step, sample_id, row, reward_mean, reward_std, zero_signal) {numbers} "
        "SELECT {base} + n, {run}, (n - 1) / {groups} + 1, (n - 1) % 100 + 1, n, 0.5, 0.5, {false} FROM counted",
    ),
    (
        PER_RUN,
        "INSERT INTO completions (id, run_id, step, group_id, {index}, num_tokens, finish_reason, reward, reward_rank, "
        "advantage) {numbers} SELECT {base} + n, {run}, (n - 1) / {per_step} + 1, {base} + (n - 1) / {g} + 1, "
        "(n - 1) % {g}, (n * 7919) % 997, 'stop', (n * 31) % 101, (n * 31) % 101, 0 FROM counted",
    ),
    (
        PER_RUN,
        "INSERT INTO completion_bodies (completion_id, text, truncated) {numbers} "
        "SELECT {base} + n, 'the square is red ' || n, {false} FROM counted",
    ),
    (
        PER_RUN,
        "INSERT INTO rewards (completion_id, position, name_id, value) {numbers} "
        "SELECT {base} + n, 0, 1, (n * 31) % 101 FROM counted",
    ),
    (
        STEPS * NAMES,
        "INSERT INTO metrics (run_id, name_id, step, value) {numbers} "
        "SELECT {run}, n % {names} + 1, (n - 1) / {names} + 1, n FROM counted",
    ),
    (
        STEPS * NAMES,
        "INSERT INTO reward_histograms (run_id, name_id, step, scored, missing, bins) {numbers} "
        "SELECT {run}, n % {names} + 1, (n - 1) / {names} + 1, 104, 0, '[]' FROM counted",
    ),
    (
        LINES,
        "INSERT INTO log_lines (id, run_id, attempt, text) {numbers} SELECT {base} + n, {run}, 1, 'line' FROM counted",
    ),
    (
        LINES,
        "INSERT INTO run_events (id, run_id, time, attempt, level, code, message) {numbers} "
        "SELECT {base} + 1 + n, {run}, '2026-01-01 00:00:00', 1, 'info', 'c', 'm' FROM counted",
    ),
)


def fill(store: Store, runs: int) -> list[int]:
    """Make runs of PER_RUN completions each, with statistics for the planner."""
    with store.write() as session:
        if _dialect(session) == "postgresql":
            session.execute(text("SET LOCAL session_replication_role = replica"))  # no look-up per foreign key
        session.execute(insert(Name), [{"name": name} for name in ("reward", *map(str, range(1, NAMES)))])
        session.execute(text(_SAMPLES[_dialect(session)]))
        ids = [create_run(session, RunConfig()) for _ in range(runs)]
        for run_id in ids:
            for count, statement in _STATEMENTS:
                session.execute(text(_filled(statement, session, run_id, count)))
            session.execute(text(f"UPDATE runs SET step = {STEPS} WHERE id = {run_id}"))
        session.execute(text("ANALYZE"))
    return ids


_SAMPLES = {
    "sqlite": "INSERT INTO samples (key, messages, columns) "
    + _NUMBERS.format(count=100)
    + "SELECT randomblob(32), '[]', '{}' FROM counted",
    "postgresql": "INSERT INTO samples (key, messages, columns) "
    + _NUMBERS.format(count=100)
    + "SELECT sha256(n::text::bytea), '[]', '{}' FROM counted",
}


def _filled(statement: str, session: Session, run_id: int, count: int) -> str:
    return statement.format(
        numbers=_NUMBERS.format(count=count),
        base=run_id << 32,
        run=run_id,
        groups=GROUPS,
        names=NAMES,
        g=G,
        per_step=GROUPS * G,
        index='"index"',
        false="0" if _dialect(session) == "sqlite" else "false",
    )


def _dialect(session: Session) -> str:
    return session.get_bind().dialect.name
