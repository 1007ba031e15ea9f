"""How often a run may be tried: attempts count that left no new checkpoint."""

import time

from app.store import Store
from app.store.ingest import Cursor, ingest
from app.store.run_writes import Owner, attempts_allowed, claim, give_back
from training.records import CheckpointRecord

OWNER = Owner(worker="w1", host="here", pid=4711, pid_started=1234.5, boot_id="b-1")


def lose(store: Store, run_id: int, *, checkpoint: int | None = None) -> int:
    """One attempt that its worker loses, after a checkpoint or without; returns what it was allowed."""
    with store.write() as session:
        claimed = claim(session, run_id, owner=OWNER, lease_seconds=60)
    assert claimed is not None
    with store.write() as session:
        if checkpoint is not None:
            record = CheckpointRecord(step=checkpoint, path="checkpoints/x", bytes=1, time=time.time())
            ingest(session, run_id, claimed.attempt, [record], Cursor(claimed.attempt, 1), store.media)
        allowed = attempts_allowed(session, run_id, claimed.attempt, without_progress=3)
        give_back(session, run_id, claimed.attempt, reason="lost", max_attempts=allowed)
    return allowed


def test_the_third_attempt_without_a_checkpoint_is_the_last(store: Store, run_id: int):
    assert [lose(store, run_id) for _ in range(3)] == [3, 3, 3]


def test_a_new_checkpoint_begins_the_count_anew(store: Store, run_id: int):
    allowed = [lose(store, run_id), lose(store, run_id, checkpoint=5), lose(store, run_id), lose(store, run_id)]
    # after the second attempt's checkpoint three more may fail
    assert allowed == [3, 5, 5, 5]
