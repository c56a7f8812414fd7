"""The tables of prover and ledger."""

import sqlalchemy as sa
from alembic import op
from ragaudit.serving.revisions import no_way_back

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "ledger_log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("verifier_key", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("origin"),
    )
    op.create_table(
        "prover_job",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("task", sa.LargeBinary(), nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("ix_prover_job_window", "prover_job", ["window"])
    op.create_table(
        "prover_job_result",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("result", sa.LargeBinary()),
        sa.Column("fault", sa.Text()),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("ix_prover_job_result_window", "prover_job_result", ["window"])
    op.create_table(
        "prover_leader",
        sa.Column("id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "prover_stale",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("marks", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant"),
    )
    op.create_table(
        "prover_tenant",
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "prover_window",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("policy", sa.LargeBinary(), nullable=False),
        sa.Column("embedder", sa.LargeBinary(), nullable=False),
        sa.Column("log_seed", sa.LargeBinary(32), nullable=False),
        sa.Column("noise_seed", sa.LargeBinary(32), nullable=False),
        sa.Column("pseudonym_key", sa.LargeBinary(32), nullable=False),
        sa.Column("slot_roots", sa.LargeBinary()),
        sa.Column("opening_salt", sa.LargeBinary(32)),
        sa.Column("opening_body", sa.LargeBinary()),
        sa.Column("countersignature", sa.LargeBinary()),
        sa.Column("unusable", sa.Text()),
        sa.Column("stopped", sa.Boolean(), nullable=False),
        sa.Column("entries_sent", sa.BigInteger(), nullable=False),
        sa.Column("final_checkpoint", sa.LargeBinary()),
        sa.Column("handed_over", sa.Boolean(), nullable=False),
        sa.Column("challenge", sa.LargeBinary()),
        sa.Column("verdict", sa.LargeBinary()),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
        sa.UniqueConstraint("number"),
    )
    op.create_table(
        "ledger_checkpoint",
        sa.Column("log_id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("size", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("note", sa.LargeBinary(), nullable=False),
        sa.Column("cosignatures", sa.SmallInteger(), nullable=False),
        sa.Column("quorum", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["log_id"], ["ledger_log.id"]),
        sa.PrimaryKeyConstraint("log_id", "size"),
    )
    op.create_table(
        "ledger_entry",
        sa.Column("log_id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("position", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("leaf_data", sa.LargeBinary(32), nullable=False),
        sa.ForeignKeyConstraint(["log_id"], ["ledger_log.id"]),
        sa.PrimaryKeyConstraint("log_id", "position"),
    )
    op.create_table(
        "ledger_log_head",
        sa.Column("log_id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("root_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("frozen", sa.Boolean(), nullable=False),
        sa.Column("checkpoint_size", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["log_id"], ["ledger_log.id"]),
        sa.PrimaryKeyConstraint("log_id"),
    )
    op.create_table(
        "ledger_tile",
        sa.Column("log_id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("level", sa.SmallInteger(), nullable=False, autoincrement=False),
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("width", sa.SmallInteger(), nullable=False),
        sa.Column("hashes", sa.LargeBinary(8192), nullable=False),
        sa.ForeignKeyConstraint(["log_id"], ["ledger_log.id"]),
        sa.PrimaryKeyConstraint("log_id", "level", "number"),
    )
    op.create_table(
        "prover_access",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["window"], ["prover_window.name"]),
        sa.PrimaryKeyConstraint("window", "number"),
    )
    op.create_table(
        "prover_account",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("named_by", sa.Text()),
        sa.Column("end_user", sa.Text()),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("dispute_key", sa.LargeBinary(32)),
        sa.ForeignKeyConstraint(["tenant"], ["prover_tenant.name"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key_digest"),
    )
    op.create_table(
        "prover_activation",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["window"], ["prover_window.name"]),
        sa.PrimaryKeyConstraint("window", "number"),
    )
    op.create_table(
        "prover_deletion",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("statement", sa.LargeBinary(), nullable=False),
        sa.Column("done", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["window"], ["prover_window.name"]),
        sa.PrimaryKeyConstraint("window"),
    )
    op.create_table(
        "prover_document",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("attributes", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["prover_tenant.name"]),
        sa.PrimaryKeyConstraint("tenant", "position"),
        sa.UniqueConstraint("tenant", "id"),
    )
    op.create_table(
        "prover_entry",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("salt", sa.LargeBinary(32), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("account", sa.Text()),
        sa.Column("counter", sa.Integer()),
        sa.Column("issued", sa.BigInteger()),
        sa.Column("openings", sa.LargeBinary()),
        sa.Column("request", sa.LargeBinary(32)),
        sa.Column("delivery", sa.LargeBinary()),
        sa.Column("ties", sa.LargeBinary()),
        sa.ForeignKeyConstraint(["window"], ["prover_window.name"]),
        sa.PrimaryKeyConstraint("window", "position"),
        sa.UniqueConstraint("window", "account", "counter"),
    )
    op.create_index("prover_entry_requests", "prover_entry", ["account", "request", "issued"])
    op.create_table(
        "prover_evidence",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("delivered", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["window"], ["prover_window.name"]),
        sa.PrimaryKeyConstraint("window", "call"),
    )
    op.create_table(
        "prover_index_version",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("ids", sa.LargeBinary(), nullable=False),
        sa.Column("content_digests", sa.LargeBinary(), nullable=False),
        sa.Column("columns", sa.LargeBinary(), nullable=False),
        sa.Column("norm_bound", sa.Integer(), nullable=False),
        sa.Column("rows", sa.LargeBinary(), nullable=False),
        sa.Column("blindings", sa.LargeBinary(), nullable=False),
        sa.Column("salts", sa.LargeBinary(), nullable=False),
        sa.Column("commitments", sa.LargeBinary(), nullable=False),
        sa.Column("root", sa.LargeBinary(32), nullable=False),
        sa.Column("proof", sa.LargeBinary(), nullable=False),
        sa.Column("marks", sa.BigInteger(), nullable=False),
        sa.Column("document_secret", sa.LargeBinary(32)),
        sa.Column("id_keys", sa.LargeBinary()),
        sa.ForeignKeyConstraint(["tenant"], ["prover_tenant.name"]),
        sa.ForeignKeyConstraint(["window"], ["prover_window.name"]),
        sa.PrimaryKeyConstraint("window", "tenant", "version"),
    )
    op.create_table(
        "prover_owner",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key_digest", sa.LargeBinary(32), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["prover_tenant.name"]),
        sa.PrimaryKeyConstraint("tenant"),
        sa.UniqueConstraint("key_digest"),
    )
    op.create_table(
        "prover_response",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("delivered", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["window"], ["prover_window.name"]),
        sa.PrimaryKeyConstraint("window", "position"),
    )
    op.create_table(
        "prover_seed_epoch",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("noise_seed", sa.LargeBinary(32), nullable=False),
        sa.Column("slot_roots", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["window"], ["prover_window.name"]),
        sa.PrimaryKeyConstraint("window", "epoch"),
    )
    op.create_table(
        "prover_time_stamp",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("which", sa.Text(), nullable=False),
        sa.Column("authority", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("not_after", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["window"], ["prover_window.name"]),
        sa.PrimaryKeyConstraint("window", "which", "authority"),
    )
    op.create_table(
        "prover_charge",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("counter", sa.Integer(), nullable=False),
        sa.Column("request", sa.LargeBinary(32), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("openings", sa.LargeBinary(), nullable=False),
        sa.Column("rows", sa.LargeBinary(), nullable=False),
        sa.Column("blinding", sa.LargeBinary(32), nullable=False),
        sa.ForeignKeyConstraint(
            ["window", "position"], ["prover_entry.window", "prover_entry.position"]
        ),
        sa.PrimaryKeyConstraint("window", "position"),
        sa.UniqueConstraint("window", "account", "counter"),
        sa.UniqueConstraint("window", "tenant", "number"),
    )
    op.create_index(
        "prover_charge_requests", "prover_charge", ["window", "account", "request", "time"]
    )
    op.create_table(
        "prover_promise",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("counter", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("nonce", sa.LargeBinary(32)),
        sa.ForeignKeyConstraint(["account"], ["prover_account.id"]),
        sa.ForeignKeyConstraint(["window"], ["prover_window.name"]),
        sa.PrimaryKeyConstraint("window", "account", "counter"),
    )
    op.create_table(
        "prover_registration",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("pseudonym", sa.LargeBinary(32), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("anchor", sa.LargeBinary(32)),
        sa.Column("dispute_key", sa.LargeBinary(32)),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("counter", sa.Integer(), nullable=False),
        sa.Column("last_time", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["account"], ["prover_account.id"]),
        sa.ForeignKeyConstraint(["tenant"], ["prover_tenant.name"]),
        sa.ForeignKeyConstraint(["window"], ["prover_window.name"]),
        sa.PrimaryKeyConstraint("window", "account"),
    )
    op.create_index("prover_registration_slots", "prover_registration", ["window", "slot"])
    op.create_index(
        "prover_registration_pseudonyms", "prover_registration", ["window", "pseudonym"]
    )
    op.create_table(
        "prover_generated",
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("charge", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("answer", sa.LargeBinary()),
        sa.Column("salt", sa.LargeBinary(32)),
        sa.Column("leaves", sa.BigInteger(), nullable=False),
        sa.Column("made_of", sa.LargeBinary()),
        sa.ForeignKeyConstraint(
            ["window", "charge"], ["prover_charge.window", "prover_charge.position"]
        ),
        sa.ForeignKeyConstraint(
            ["window", "position"], ["prover_entry.window", "prover_entry.position"]
        ),
        sa.PrimaryKeyConstraint("window", "charge"),
    )
    op.create_index("prover_generated_places", "prover_generated", ["window", "position"])
    op.create_table(
        "prover_idempotency",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("key", sa.LargeBinary(32), nullable=False),
        sa.Column("window", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["window", "position"], ["prover_entry.window", "prover_entry.position"]
        ),
        sa.PrimaryKeyConstraint("account", "key"),
    )
    op.create_index("prover_idempotency_places", "prover_idempotency", ["window", "position"])


def downgrade() -> None:
    raise no_way_back()
