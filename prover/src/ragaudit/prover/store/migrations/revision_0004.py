"""Beside a checkpoint stands whether the quorum of further cosigners is reached."""

import sqlalchemy as sa
from ragaudit.serving.revisions import add_with_values, no_way_back

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    add_with_values("ledger_checkpoint", (sa.Column("quorum", sa.Boolean()), False))


def downgrade() -> None:
    raise no_way_back()
