"""Runs with their events, log lines, checkpoints and metrics; workers, devices and tokens."""

from functools import partial

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TEXT = sa.Text()
HASH = sa.LargeBinary(32)
INSTANT = sa.DateTime(timezone=True)
NUMBER = sa.Double()
DOCUMENT = sa.JSON()
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
required = partial(sa.Column, nullable=False)
optional = sa.Column


def upgrade() -> None:
    _runs()
    _run_lists()
    _metrics()
    _workers()


def downgrade() -> None:
    for table in (
        "api_tokens",
        "devices",
        "workers",
        "reward_histograms",
        "metrics",
        "names",
        "checkpoints",
        "log_lines",
        "run_events",
        "runs",
    ):
        op.drop_table(table)


def _runs() -> None:
    op.create_table(
        "runs",
        required("id", sa.Integer),
        required("name", TEXT),
        required("project", TEXT),
        required("tags", DOCUMENT),
        required("config", DOCUMENT),
        required("search", TEXT),
        optional("created_by", TEXT),
        optional("submission_key", sa.String(200)),
        required("priority", sa.Integer),
        required("state", sa.String(16)),
        optional("reason", TEXT),
        required("created_at", INSTANT),
        optional("started_at", INSTANT),
        optional("ended_at", INSTANT),
        optional("cancel_requested_at", INSTANT),
        required("attempt", sa.Integer),
        optional("worker", TEXT),
        optional("host", TEXT),
        optional("pid", sa.Integer),
        optional("pid_started", NUMBER),
        optional("boot_id", TEXT),
        optional("lease_expires_at", INSTANT),
        optional("exit_code", sa.Integer),
        optional("exit_signal", sa.Integer),
        optional("phase", TEXT),
        optional("phase_detail", TEXT),
        required("step", sa.Integer),
        required("max_steps", sa.Integer),
        optional("progress_at", INSTANT),
        optional("reward_first", NUMBER),
        optional("reward_last", NUMBER),
        required("completions", sa.Integer),
        required("images", sa.Integer),
        optional("model_path", TEXT),
        required("record_file", sa.Integer),
        required("record_offset", BIG),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("submission_key", name="uq_runs_submission_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_runs_state_id", "runs", ["state", "id"])


def _run_lists() -> None:
    op.create_table(
        "run_events",
        required("id", BIG, autoincrement=False),
        required("run_id", sa.Integer),
        required("time", INSTANT),
        required("attempt", sa.Integer),
        required("level", TEXT),
        required("code", TEXT),
        required("message", TEXT),
        optional("step", sa.Integer),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_events_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_run_events"),
    )

    op.create_table(
        "log_lines",
        required("id", BIG, autoincrement=False),
        required("run_id", sa.Integer),
        required("attempt", sa.Integer),
        required("text", TEXT),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_log_lines_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_log_lines"),
    )

    op.create_table(
        "checkpoints",
        required("run_id", sa.Integer),
        required("step", sa.Integer),
        required("path", TEXT),
        required("bytes", BIG),
        required("created_at", INSTANT),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_checkpoints_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "step", name="pk_checkpoints"),
    )


def _metrics() -> None:
    op.create_table(
        "names",
        required("id", sa.Integer),
        required("name", TEXT),
        sa.PrimaryKeyConstraint("id", name="pk_names"),
        sa.UniqueConstraint("name", name="uq_names_name"),
    )

    op.create_table(
        "metrics",
        required("run_id", sa.Integer),
        required("name_id", sa.Integer),
        required("step", sa.Integer),
        required("value", NUMBER),
        sa.ForeignKeyConstraint(["name_id"], ["names.id"], name="fk_metrics_name_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_metrics_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "name_id", "step", name="pk_metrics"),
        sqlite_with_rowid=False,
    )

    op.create_table(
        "reward_histograms",
        required("run_id", sa.Integer),
        required("name_id", sa.Integer),
        required("step", sa.Integer),
        required("scored", sa.Integer),
        required("missing", sa.Integer),
        optional("mean", NUMBER),
        optional("std", NUMBER),
        optional("low", NUMBER),
        optional("high", NUMBER),
        required("bins", DOCUMENT),
        sa.ForeignKeyConstraint(["name_id"], ["names.id"], name="fk_reward_histograms_name_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_reward_histograms_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "name_id", "step", name="pk_reward_histograms"),
        sqlite_with_rowid=False,
    )


def _workers() -> None:
    op.create_table(
        "workers",
        required("name", TEXT),
        required("host", TEXT),
        required("pid", sa.Integer),
        required("versions", DOCUMENT),
        required("registered_at", INSTANT),
        required("last_seen", INSTANT),
        sa.PrimaryKeyConstraint("name", name="pk_workers"),
    )

    op.create_table(
        "devices",
        required("worker", TEXT),
        required("kind", sa.String(20)),
        required("index", sa.Integer),
        required("name", TEXT),
        optional("memory_bytes", BIG),
        sa.ForeignKeyConstraint(["worker"], ["workers.name"], name="fk_devices_worker", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("worker", "kind", "index", name="pk_devices"),
    )

    op.create_table(
        "api_tokens",
        required("id", sa.Integer),
        required("name", TEXT),
        required("token_hash", HASH),
        required("created_at", INSTANT),
        optional("expires_at", INSTANT),
        optional("last_used_at", INSTANT),
        optional("revoked_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_api_tokens"),
        sa.UniqueConstraint("token_hash", name="uq_api_tokens_token_hash"),
    )
