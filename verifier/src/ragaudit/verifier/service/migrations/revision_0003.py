"""What third parties say of checkpoints has a table."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "attestation",
        sa.Column("window", sa.String(160), primary_key=True),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("size", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("identity", sa.LargeBinary(32), primary_key=True),
        sa.Column("document", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    raise no_way_back()
