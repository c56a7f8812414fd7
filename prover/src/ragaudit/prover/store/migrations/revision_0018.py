"""The document secret of an index, and its rows' id keys."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("prover_index_version", sa.Column("document_secret", sa.LargeBinary(32)))
    op.add_column("prover_index_version", sa.Column("id_keys", sa.LargeBinary()))


def downgrade() -> None:
    raise no_way_back()
