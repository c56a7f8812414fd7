"""Questions that rows have paid for, and what was answered to them."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0012"
down_revision = "0011"

_ENTRY = ["prover_entry.window", "prover_entry.position"]


def upgrade() -> None:
    op.create_table(
        "prover_charge",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("counter", sa.Integer(), nullable=False),
        sa.Column("request", sa.LargeBinary(32), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("openings", sa.LargeBinary(), nullable=False),
        sa.Column("rows", sa.LargeBinary(), nullable=False),
        sa.Column("blinding", sa.LargeBinary(32), nullable=False),
        sa.ForeignKeyConstraint(["window", "position"], _ENTRY),
        sa.PrimaryKeyConstraint("window", "position"),
        sa.UniqueConstraint("window", "tenant", "number"),
        sa.UniqueConstraint("window", "account", "counter"),
    )
    op.create_index(
        "prover_charge_requests", "prover_charge", ["window", "account", "request", "time"]
    )
    op.create_table(
        "prover_generated",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("charge", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("answer", sa.LargeBinary()),
        sa.Column("salt", sa.LargeBinary(32)),
        sa.Column("leaves", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["window", "charge"], ["prover_charge.window", "prover_charge.position"]
        ),
        sa.ForeignKeyConstraint(["window", "position"], _ENTRY),
        sa.PrimaryKeyConstraint("window", "charge"),
    )


def downgrade() -> None:
    raise no_way_back()
