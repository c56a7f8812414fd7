"""The tables of the verifier."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "activation",
        sa.Column("window", sa.String(160), nullable=False),
        sa.Column("a", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("window", "a"),
    )
    op.create_table(
        "attestation",
        sa.Column("window", sa.String(160), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("identity", sa.LargeBinary(32), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("window", "kind", "size", "identity"),
    )
    op.create_table(
        "checkpoint",
        sa.Column("window", sa.String(160), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("root", sa.LargeBinary(32), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("window", "size"),
    )
    op.create_table(
        "chunk",
        sa.Column("window", sa.String(160), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("window", "name", "number"),
    )
    op.create_table(
        "clock",
        sa.Column("id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("latest", sa.BigInteger(), nullable=False),
        sa.Column("writes", sa.BigInteger(), nullable=False),
        sa.Column("mark", sa.LargeBinary(32), nullable=False),
        sa.Column("before", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "dispute",
        sa.Column("window", sa.String(160), nullable=False),
        sa.Column("identity", sa.LargeBinary(32), nullable=False),
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
        sa.PrimaryKeyConstraint("window", "identity"),
    )
    op.create_index("dispute_account", "dispute", ["window", "pseudonym"])
    op.create_index("dispute_record", "dispute", ["window", "position"])
    op.create_table(
        "entry",
        sa.Column("window", sa.String(160), nullable=False),
        sa.Column("index", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("salt", sa.LargeBinary(32), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("pseudonym", sa.LargeBinary(32)),
        sa.PrimaryKeyConstraint("window", "index"),
    )
    op.create_index("entry_pseudonym", "entry", ["window", "pseudonym"])
    op.create_table(
        "item",
        sa.Column("window", sa.String(160), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("window", "name"),
    )
    op.create_table(
        "job",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("task", sa.LargeBinary(), nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("ix_job_window", "job", ["window"])
    op.create_table(
        "job_result",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("result", sa.LargeBinary()),
        sa.Column("fault", sa.Text()),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("ix_job_result_window", "job_result", ["window"])
    op.create_table(
        "provider",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("key", sa.LargeBinary(32), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "submission",
        sa.Column("window", sa.String(160), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("identity", sa.LargeBinary(64), nullable=False),
        sa.Column("account", sa.LargeBinary(32), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("window", "kind", "position", "identity"),
    )
    op.create_table(
        "submission_space",
        sa.Column("window", sa.String(160), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("account", sa.LargeBinary(32), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("window", "kind", "account"),
    )
    op.create_table(
        "window",
        sa.Column("origin", sa.String(160), nullable=False),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("origin_hash", sa.LargeBinary(32), nullable=False),
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
        sa.PrimaryKeyConstraint("origin"),
        sa.UniqueConstraint("origin_hash"),
        sa.UniqueConstraint("provider", "log_key"),
    )
    op.create_index("ix_window_name", "window", ["name"])


def downgrade() -> None:
    raise no_way_back()
