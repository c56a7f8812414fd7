"""The tables of the first release."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "activation",
        sa.Column("window", sa.String(160), primary_key=True),
        sa.Column("a", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "checkpoint",
        sa.Column("window", sa.String(160), primary_key=True),
        sa.Column("size", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("root", sa.LargeBinary(32), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "chunk",
        sa.Column("window", sa.String(160), primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "clock",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("schema", sa.Integer(), nullable=False),
        sa.Column("latest", sa.BigInteger(), nullable=False),
        sa.Column("fenced", sa.Integer(), nullable=False),
    )
    op.create_table(
        "dispute",
        sa.Column("window", sa.String(160), primary_key=True),
        sa.Column("identity", sa.LargeBinary(32), primary_key=True),
        sa.Column("pseudonym", sa.LargeBinary(32), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("answer_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("file_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("public", sa.LargeBinary()),
        sa.Column("file", sa.LargeBinary()),
        sa.Column("finding", sa.LargeBinary()),
        sa.Column("step", sa.Integer()),
    )
    op.create_index("dispute_account", "dispute", ["window", "pseudonym"])
    op.create_index("dispute_record", "dispute", ["window", "position"])
    op.create_table(
        "entry",
        sa.Column("window", sa.String(160), primary_key=True),
        sa.Column("index", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("salt", sa.LargeBinary(32), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("pseudonym", sa.LargeBinary(32)),
    )
    op.create_index("entry_pseudonym", "entry", ["window", "pseudonym"])
    op.create_table(
        "item",
        sa.Column("window", sa.String(160), primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "provider",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("key", sa.LargeBinary(32), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "submission",
        sa.Column("window", sa.String(160), primary_key=True),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("position", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("identity", sa.LargeBinary(64), primary_key=True),
        sa.Column("account", sa.LargeBinary(32), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "window",
        sa.Column("origin", sa.String(160), primary_key=True),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("origin_hash", sa.LargeBinary(32), nullable=False, unique=True),
        sa.Column("policy_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("log_key", sa.LargeBinary(32)),
        sa.Column("chain_salt", sa.LargeBinary(32), nullable=False),
        sa.Column("registered", sa.BigInteger(), nullable=False),
        sa.Column("countersigned", sa.BigInteger()),
        sa.Column("refused", sa.BigInteger()),
        sa.Column("records", sa.BigInteger()),
        sa.Column("closed", sa.BigInteger()),
        sa.Column("listed", sa.BigInteger()),
        sa.Column("challenged", sa.BigInteger()),
        sa.Column("deadline", sa.BigInteger()),
        sa.Column("sealed", sa.BigInteger()),
        sa.Column("decided", sa.BigInteger()),
        sa.UniqueConstraint("provider", "log_key"),
    )
    op.create_index("ix_window_name", "window", ["name"])


def downgrade() -> None:
    raise no_way_back()
