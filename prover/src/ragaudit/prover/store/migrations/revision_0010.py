"""One of several processes leads; what they hold in memory of a window has a number."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "prover_leader",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    # With a default: on SQLite a table that others refer to cannot be copied to get a column.
    op.add_column(
        "prover_window",
        sa.Column("generation", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
    )


def downgrade() -> None:
    raise no_way_back()
