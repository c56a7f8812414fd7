"""The bytes of submissions are kept as sums by account."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "submission_space",
        sa.Column("window", sa.String(160), primary_key=True),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("account", sa.LargeBinary(32), primary_key=True),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
    )
    op.execute(
        'INSERT INTO submission_space ("window", kind, account, bytes) '
        'SELECT "window", kind, account, SUM(LENGTH(document)) FROM submission '
        'GROUP BY "window", kind, account'
    )


def downgrade() -> None:
    raise no_way_back()
