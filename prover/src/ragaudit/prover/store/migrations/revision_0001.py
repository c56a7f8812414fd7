"""The tables of the first release, the ledger's among them."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0001"
down_revision = None


def upgrade() -> None:
    _ledger()
    _prover()


def _ledger() -> None:
    op.create_table(
        "ledger_log",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("origin", sa.Text(), nullable=False, unique=True),
        sa.Column("verifier_key", sa.Text(), nullable=False),
    )
    op.create_table(
        "ledger_checkpoint",
        sa.Column(
            "log_id",
            sa.Integer(),
            sa.ForeignKey("ledger_log.id"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("size", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("note", sa.LargeBinary(), nullable=False),
        sa.Column("cosignatures", sa.SmallInteger(), nullable=False),
    )
    op.create_table(
        "ledger_entry",
        sa.Column(
            "log_id",
            sa.Integer(),
            sa.ForeignKey("ledger_log.id"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("position", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("leaf_data", sa.LargeBinary(32), nullable=False),
    )
    op.create_table(
        "ledger_log_head",
        sa.Column(
            "log_id",
            sa.Integer(),
            sa.ForeignKey("ledger_log.id"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("root_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("frozen", sa.Boolean(), nullable=False),
        sa.Column("checkpoint_size", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "ledger_tile",
        sa.Column(
            "log_id",
            sa.Integer(),
            sa.ForeignKey("ledger_log.id"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("level", sa.SmallInteger(), primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("width", sa.SmallInteger(), nullable=False),
        sa.Column("hashes", sa.LargeBinary(8192), nullable=False),
    )


def _prover() -> None:
    op.create_table(
        "prover_schema",
        sa.Column("version", sa.Integer(), primary_key=True),
    )
    op.create_table(
        "prover_tenant",
        sa.Column("name", sa.Text(), primary_key=True),
    )
    op.create_table(
        "prover_window",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("number", sa.Integer(), nullable=False, unique=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("policy", sa.LargeBinary(), nullable=False),
        sa.Column("embedder", sa.LargeBinary(), nullable=False),
        sa.Column("log_seed", sa.LargeBinary(32), nullable=False),
        sa.Column("noise_seed", sa.LargeBinary(32), nullable=False),
        sa.Column("pseudonym_key", sa.LargeBinary(32), nullable=False),
        sa.Column("slot_roots", sa.LargeBinary()),
        sa.Column("opening_salt", sa.LargeBinary(32)),
        sa.Column("opening_body", sa.LargeBinary()),
        sa.Column("empty_checkpoint", sa.LargeBinary()),
        sa.Column("countersignature", sa.LargeBinary()),
        sa.Column("unusable", sa.Text()),
        sa.Column("stopped", sa.Boolean(), nullable=False),
        sa.Column("entries_sent", sa.BigInteger(), nullable=False),
        sa.Column("final_checkpoint", sa.LargeBinary()),
        sa.Column("handed_over", sa.Boolean(), nullable=False),
        sa.Column("challenge", sa.LargeBinary()),
        sa.Column("verdict", sa.LargeBinary()),
    )
    op.create_table(
        "prover_account",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("tenant", sa.Text(), sa.ForeignKey("prover_tenant.name"), nullable=False),
        sa.Column("key_digest", sa.LargeBinary(32), nullable=False, unique=True),
    )
    op.create_table(
        "prover_activation",
        sa.Column("window", sa.Text(), sa.ForeignKey("prover_window.name"), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "prover_document",
        sa.Column("tenant", sa.Text(), sa.ForeignKey("prover_tenant.name"), primary_key=True),
        sa.Column("position", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.UniqueConstraint("tenant", "id"),
    )
    op.create_table(
        "prover_entry",
        sa.Column("window", sa.Text(), sa.ForeignKey("prover_window.name"), primary_key=True),
        sa.Column("position", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("salt", sa.LargeBinary(32), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "prover_index_version",
        sa.Column("window", sa.Text(), sa.ForeignKey("prover_window.name"), primary_key=True),
        sa.Column("tenant", sa.Text(), sa.ForeignKey("prover_tenant.name"), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("ids", sa.LargeBinary(), nullable=False),
        sa.Column("content_digests", sa.LargeBinary(), nullable=False),
        sa.Column("rows", sa.LargeBinary(), nullable=False),
        sa.Column("blindings", sa.LargeBinary(), nullable=False),
        sa.Column("salts", sa.LargeBinary(), nullable=False),
        sa.Column("commitments", sa.LargeBinary(), nullable=False),
        sa.Column("root", sa.LargeBinary(32), nullable=False),
        sa.Column("proof", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "prover_response",
        sa.Column("window", sa.Text(), sa.ForeignKey("prover_window.name"), primary_key=True),
        sa.Column("position", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("delivered", sa.Boolean(), nullable=False),
    )
    op.create_table(
        "prover_promise",
        sa.Column("window", sa.Text(), sa.ForeignKey("prover_window.name"), primary_key=True),
        sa.Column("account", sa.Text(), sa.ForeignKey("prover_account.name"), primary_key=True),
        sa.Column("counter", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("nonce", sa.LargeBinary(32)),
    )
    op.create_table(
        "prover_record",
        sa.Column("window", sa.Text(), primary_key=True),
        sa.Column("position", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("counter", sa.Integer(), nullable=False),
        sa.Column("openings", sa.LargeBinary(), nullable=False),
        sa.Column("issued", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["window", "position"], ["prover_entry.window", "prover_entry.position"]
        ),
        sa.UniqueConstraint("window", "account", "counter"),
    )
    op.create_table(
        "prover_registration",
        sa.Column("window", sa.Text(), sa.ForeignKey("prover_window.name"), primary_key=True),
        sa.Column("account", sa.Text(), sa.ForeignKey("prover_account.name"), primary_key=True),
        sa.Column("pseudonym", sa.LargeBinary(32), nullable=False),
        sa.Column("tenant", sa.Text(), sa.ForeignKey("prover_tenant.name"), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("anchor", sa.LargeBinary(32)),
        sa.Column("dispute_key", sa.LargeBinary(32)),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("counter", sa.Integer(), nullable=False),
        sa.Column("last_time", sa.BigInteger(), nullable=False),
    )


def downgrade() -> None:
    raise no_way_back()
