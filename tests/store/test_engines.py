"""Databases are opened so that readers and one writer never trip over each other, or refused with a reason."""

import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import InternalError

from app.store import DatabaseUnusable, Store, open_store
from app.store.engines import open_engine, parse_url
from app.store.filesystems import network_filesystem
from app.store.queries.runs import list_runs
from app.store.run_writes import create_run
from training.config import RunConfig


def test_a_write_that_fails_leaves_nothing(store: Store, config: RunConfig):
    def fail_half_way() -> None:
        with store.write() as session:
            create_run(session, config)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    with store.read() as session:
        assert list_runs(session).items == []


def test_a_reader_sees_one_moment_and_never_waits_for_a_writer(store: Store, config: RunConfig):
    with store.read() as before:
        assert list_runs(before).items == []
        with store.write() as session:
            create_run(session, config)
            began = time.monotonic()
            with store.read() as during:
                assert list_runs(during).items == []
            assert time.monotonic() - began < 5
        assert list_runs(before).items == []
        with store.read() as after:
            assert len(list_runs(after).items) == 1


def test_what_a_reader_writes_is_not_kept(store: Store, config: RunConfig):
    with suppress(InternalError), store.read() as session:  # PostgreSQL refuses at once
        create_run(session, config)
    with store.read() as session:
        assert list_runs(session).items == []


def test_writers_wait_for_each_other_also_when_they_read_first(store: Store, config: RunConfig):
    failures: list[Exception] = []

    def write() -> None:
        try:
            for _ in range(10):
                with store.write() as session:
                    list_runs(session)
                    create_run(session, config)
        except Exception as error:  # whatever it is, the test must see it
            failures.append(error)

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with store.read() as session:
        assert len(list_runs(session, limit=100).items) == 60


def test_settings_of_sqlite(sqlite_template: Path):
    engine = open_engine(parse_url(f"sqlite:///{sqlite_template}"))
    with engine.connect() as connection:
        found = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    engine.dispose()
    assert found == {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 30_000}


@pytest.mark.parametrize(
    "url", ["", "nonsense", "sqlite://", "sqlite:///:memory:", "mysql://h/d", "oracle://u:hunter2@h/d", "postgresql"]
)
def test_other_databases_are_refused_without_telling_the_password(url: str, tmp_path: Path):
    with pytest.raises(DatabaseUnusable, match="VLMSCOPE_DATABASE_URL") as refusal:
        open_store(url, tmp_path)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg"])
def test_postgresql_is_spoken_to_through_psycopg(scheme: str):
    url = parse_url(f"{scheme}://u:p@h/d")
    assert (url.drivername, url.password) == ("postgresql+psycopg", "p")


def test_opening_makes_no_connection(tmp_path: Path):
    open_store("postgresql://nobody@127.0.0.1:1/none", tmp_path).close()


MOUNTS = r"""/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local\040disk xfs rw 0 0
over /mnt overlay rw 0 0
10.0.0.1@tcp:/scratch /mnt/scratch lustre rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/data", None),
        ("/home/ada", "nfs4"),
        ("/homework", None),
        ("/home/local disk/ada", None),
        ("/mnt/x", None),
        ("/mnt/scratch/x", "lustre"),
    ],
)
def test_network_file_systems_are_told_by_the_deepest_mount(folder: str, kind: str | None, tmp_path: Path):
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert network_filesystem(Path(folder), mounts) == kind
    assert network_filesystem(Path(folder), tmp_path / "missing") is None


def test_sqlite_on_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.store.engines.network_filesystem", lambda _: "nfs4")
    with pytest.raises(DatabaseUnusable, match=r"nfs4.*VLMSCOPE_DATA_DIR"):
        open_store(f"sqlite:///{tmp_path}/a.sqlite3", tmp_path)
