"""The revision has a table of its own."""

from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.drop_column("clock", "schema")


def downgrade() -> None:
    raise no_way_back()
