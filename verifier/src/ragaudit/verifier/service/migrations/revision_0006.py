"""Marks of what was attested, beside the number that said whether there is a fence."""

import sqlalchemy as sa
from alembic import op
from ragaudit.ledger.log.tree import EMPTY_ROOT
from ragaudit.serving.revisions import add_with_values, no_way_back

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    add_with_values(
        "clock",
        (sa.Column("writes", sa.BigInteger), 0),
        (sa.Column("mark", sa.LargeBinary(32)), EMPTY_ROOT),
        (sa.Column("before", sa.LargeBinary(32)), EMPTY_ROOT),
    )
    # A database that had a fence is refused where the file is missing, as before.
    op.execute("UPDATE clock SET writes = fenced")
    with op.batch_alter_table("clock") as batch:
        batch.drop_column("fenced")


def downgrade() -> None:
    raise no_way_back()
