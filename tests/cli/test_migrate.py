"""`vlmscope migrate`: makes the database and can be called again."""

import sqlite3
from pathlib import Path

from tests.cli.command import message, vlmscope


def test_database_is_made_and_a_second_call_changes_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        done = vlmscope("migrate", "--data-dir", tmp_path / "new" / "data", folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, "the database is up to date\n"), done.stderr
    with sqlite3.connect(tmp_path / "new" / "data" / "vlmscope.sqlite3") as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)


def test_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    vlmscope("migrate", "--data-dir", tmp_path, folder=tmp_path)
    with sqlite3.connect(tmp_path / "vlmscope.sqlite3") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    done = vlmscope("migrate", "--data-dir", tmp_path, folder=tmp_path)
    assert done.returncode == 1
    assert message(done).startswith("vlmscope: ")
    assert "9999" in message(done)
