"""Attributes of documents, later versions of an index, and answers that a retry gets again."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import add_with_values, no_way_back

revision = "0002"
down_revision = "0001"

_NORM_BOUND = 127  # of every index until then


def upgrade() -> None:
    add_with_values("prover_document", (sa.Column("attributes", sa.Text()), ""))
    add_with_values(
        "prover_index_version",
        (sa.Column("columns", sa.LargeBinary()), b"[]"),
        (sa.Column("norm_bound", sa.Integer()), _NORM_BOUND),
        (sa.Column("second", sa.Boolean()), False),
        (sa.Column("marks", sa.BigInteger()), 0),
    )
    op.create_table(
        "prover_stale",
        sa.Column("tenant", sa.Text(), primary_key=True),
        sa.Column("marks", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "prover_answered",
        sa.Column("window", sa.Text(), primary_key=True),
        sa.Column("position", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("request", sa.LargeBinary(32), nullable=False),
        sa.Column("issued", sa.BigInteger(), nullable=False),
        sa.Column("delivery", sa.LargeBinary(), nullable=False),
        sa.Column("ties", sa.LargeBinary()),
        sa.ForeignKeyConstraint(
            ["window", "position"], ["prover_record.window", "prover_record.position"]
        ),
    )
    op.create_index("prover_answered_requests", "prover_answered", ["account", "request", "issued"])
    op.create_table(
        "prover_idempotency",
        sa.Column("account", sa.Text(), primary_key=True),
        sa.Column("key", sa.LargeBinary(32), primary_key=True),
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["window", "position"], ["prover_answered.window", "prover_answered.position"]
        ),
    )
    op.create_table(
        "prover_served",
        sa.Column("window", sa.Text(), primary_key=True),
        sa.Column("account", sa.Text(), primary_key=True),
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
    )
    op.execute("UPDATE prover_schema SET version = 3")


def downgrade() -> None:
    raise no_way_back()
