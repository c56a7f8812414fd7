"""What a generated answer was made of, and evidence of a window beside its responses."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("prover_generated", sa.Column("made_of", sa.LargeBinary()))
    op.create_table(
        "prover_evidence",
        sa.Column("window", sa.Text(), sa.ForeignKey("prover_window.name"), nullable=False),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("delivered", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("window", "call"),
    )


def downgrade() -> None:
    raise no_way_back()
