"""End users are pairs of the account that names them and its name for them; dispute keys."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    # What refers to the column follows. Accounts that an application's key made before keep their
    # names: nothing tells them from those that the operator added.
    op.alter_column("prover_account", "name", new_column_name="id")
    op.add_column("prover_account", sa.Column("named_by", sa.Text()))
    op.add_column("prover_account", sa.Column("end_user", sa.Text()))
    op.add_column("prover_account", sa.Column("dispute_key", sa.LargeBinary(32)))


def downgrade() -> None:
    raise no_way_back()
