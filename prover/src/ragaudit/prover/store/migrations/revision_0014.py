"""What was deleted of finished windows, and how their rows are found that go."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "prover_deletion",
        sa.Column("window", sa.Text(), sa.ForeignKey("prover_window.name"), nullable=False),
        sa.Column("statement", sa.LargeBinary(), nullable=False),
        sa.Column("done", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("window"),
    )
    # Without them each row that goes would have these tables read whole for those that refer to it.
    op.create_index("prover_idempotency_places", "prover_idempotency", ["window", "position"])
    op.create_index("prover_generated_places", "prover_generated", ["window", "position"])


def downgrade() -> None:
    raise no_way_back()
