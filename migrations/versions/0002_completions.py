"""Prompts, images, groups and completions."""

from functools import partial

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TEXT = sa.Text()
HASH = sa.LargeBinary(32)
INSTANT = sa.DateTime(timezone=True)
NUMBER = sa.Double()
DOCUMENT = sa.JSON()
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
required = partial(sa.Column, nullable=False)
optional = sa.Column


def upgrade() -> None:
    _prompts()
    _completions()
    _details()


def downgrade() -> None:
    for table in (
        "completion_tokens",
        "rewards",
        "completion_bodies",
        "completions",
        "groups",
        "run_images",
        "sample_images",
        "samples",
        "images",
    ):
        op.drop_table(table)


def _prompts() -> None:
    op.create_table(
        "images",
        required("sha256", HASH),
        required("width", sa.Integer),
        required("height", sa.Integer),
        required("format", sa.String(8)),
        required("bytes", BIG),
        required("created_at", INSTANT),
        sa.PrimaryKeyConstraint("sha256", name="pk_images"),
    )

    op.create_table(
        "samples",
        required("id", BIG),
        required("key", HASH),
        required("messages", DOCUMENT),
        required("columns", DOCUMENT),
        sa.PrimaryKeyConstraint("id", name="pk_samples"),
        sa.UniqueConstraint("key", name="uq_samples_key"),
    )

    op.create_table(
        "sample_images",
        required("sample_id", BIG),
        required("position", sa.Integer),
        required("sha256", HASH),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name="fk_sample_images_sample_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["sha256"], ["images.sha256"], name="fk_sample_images_sha256"),
        sa.PrimaryKeyConstraint("sample_id", "position", name="pk_sample_images"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_sample_images_sha256", "sample_images", ["sha256"])

    op.create_table(
        "run_images",
        required("run_id", sa.Integer),
        required("sha256", HASH),
        required("first_step", sa.Integer),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_images_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["sha256"], ["images.sha256"], name="fk_run_images_sha256"),
        sa.PrimaryKeyConstraint("run_id", "sha256", name="pk_run_images"),
        sqlite_with_rowid=False,
    )


def _completions() -> None:
    op.create_table(
        "groups",
        required("id", BIG, autoincrement=False),
        required("run_id", sa.Integer),
        required("step", sa.Integer),
        required("sample_id", BIG),
        required("row", sa.Integer),
        optional("reward_mean", NUMBER),
        optional("reward_std", NUMBER),
        required("zero_signal", sa.Boolean),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_groups_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["sample_id"], ["samples.id"], name="fk_groups_sample_id"),
        sa.PrimaryKeyConstraint("id", name="pk_groups"),
    )
    op.create_index("ix_groups_run_id_step_id", "groups", ["run_id", "step", "id"])
    op.create_index("ix_groups_sample_id_run_id_step", "groups", ["sample_id", "run_id", "step"])

    op.create_table(
        "completions",
        required("id", BIG, autoincrement=False),
        required("run_id", sa.Integer),
        required("step", sa.Integer),
        required("group_id", BIG),
        required("index", sa.Integer),
        required("num_tokens", sa.Integer),
        required("finish_reason", sa.String(20)),
        optional("reward", NUMBER),
        required("reward_rank", NUMBER),
        optional("advantage", NUMBER),
        sa.ForeignKeyConstraint(["group_id"], ["groups.id"], name="fk_completions_group_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_completions_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_completions"),
    )
    op.create_index("ix_completions_run_id_step_id", "completions", ["run_id", "step", "id"])
    op.create_index("ix_completions_run_id_reward_rank_id", "completions", ["run_id", "reward_rank", "id"])
    op.create_index("ix_completions_run_id_num_tokens_id", "completions", ["run_id", "num_tokens", "id"])
    op.create_index("ix_completions_group_id_index", "completions", ["group_id", "index"], unique=True)


def _details() -> None:
    op.create_table(
        "completion_bodies",
        required("completion_id", BIG, autoincrement=False),
        required("text", TEXT),
        required("truncated", sa.Boolean),
        sa.ForeignKeyConstraint(
            ["completion_id"], ["completions.id"], name="fk_completion_bodies_completion_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("completion_id", name="pk_completion_bodies"),
    )

    op.create_table(
        "rewards",
        required("completion_id", BIG, autoincrement=False),
        required("position", sa.SmallInteger, autoincrement=False),
        required("name_id", sa.Integer),
        optional("value", NUMBER),
        optional("error", TEXT),
        optional("parsed", TEXT),
        sa.ForeignKeyConstraint(
            ["completion_id"], ["completions.id"], name="fk_rewards_completion_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["name_id"], ["names.id"], name="fk_rewards_name_id"),
        sa.PrimaryKeyConstraint("completion_id", "position", name="pk_rewards"),
        sqlite_with_rowid=False,
    )

    op.create_table(
        "completion_tokens",
        required("completion_id", BIG, autoincrement=False),
        required("packed", sa.LargeBinary),
        sa.ForeignKeyConstraint(
            ["completion_id"], ["completions.id"], name="fk_completion_tokens_completion_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("completion_id", name="pk_completion_tokens"),
    )
