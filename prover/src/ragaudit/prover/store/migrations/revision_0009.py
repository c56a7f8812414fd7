"""Time stamps have a table."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0009"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "prover_time_stamp",
        sa.Column("window", sa.Text, sa.ForeignKey("prover_window.name"), primary_key=True),
        sa.Column("which", sa.Text, primary_key=True),
        sa.Column("authority", sa.Text, primary_key=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("not_after", sa.BigInteger, nullable=False),
        sa.Column("token", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    raise no_way_back()
