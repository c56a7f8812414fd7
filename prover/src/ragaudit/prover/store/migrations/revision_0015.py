"""Who exported the records of an account, when and why."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "prover_access",
        sa.Column("window", sa.Text(), sa.ForeignKey("prover_window.name"), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("window", "number"),
    )


def downgrade() -> None:
    raise no_way_back()
