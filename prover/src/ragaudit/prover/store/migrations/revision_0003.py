"""The revision has a table of its own; nobody read the empty checkpoint of a window."""

from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.drop_column("prover_window", "empty_checkpoint")
    op.drop_table("prover_schema")


def downgrade() -> None:
    raise no_way_back()
