"""Later seed epochs of a window, under which its log goes on after a restore."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0007"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "prover_seed_epoch",
        sa.Column("window", sa.Text(), sa.ForeignKey("prover_window.name"), primary_key=True),
        sa.Column("epoch", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("noise_seed", sa.LargeBinary(32), nullable=False),
        sa.Column("slot_roots", sa.LargeBinary(), nullable=False),
    )


def downgrade() -> None:
    raise no_way_back()
