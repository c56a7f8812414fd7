"""Jobs have a key, and what became of them a table: the first result of a key stays."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "job",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("task", sa.LargeBinary(), nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
    )
    op.create_index("ix_job_window", "job", ["window"])
    op.create_table(
        "job_result",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("result", sa.LargeBinary()),
        sa.Column("fault", sa.Text()),
    )
    op.create_index("ix_job_result_window", "job_result", ["window"])


def downgrade() -> None:
    raise no_way_back()
