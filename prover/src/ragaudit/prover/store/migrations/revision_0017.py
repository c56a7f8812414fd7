"""API keys of the owners of tenants' documents."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_table(
        "prover_owner",
        sa.Column("tenant", sa.Text(), sa.ForeignKey("prover_tenant.name"), nullable=False),
        sa.Column("key_digest", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("tenant"),
        sa.UniqueConstraint("key_digest"),
    )


def downgrade() -> None:
    raise no_way_back()
