"""Tables of the prover. The log itself is in the ledger's tables of the same database.

Blobs of vectors, blindings, salts and openings are secrets of the provider: whoever reads this
database can open every commitment of its windows.

Who changes a table adds a migration (`store.migrations`): a test compares both.
"""

from ragaudit.serving.jobs.job import job_tables
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

jobs = job_tables(metadata, "prover_")

tenant = Table("prover_tenant", metadata, Column("name", Text, primary_key=True))

document = Table(
    "prover_document",
    metadata,
    Column("tenant", ForeignKey(tenant.c.name), primary_key=True),
    # A position is the row's place in the index: it is given, never drawn from a sequence.
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("attributes", Text, nullable=False),  # canonical JSON, empty for none
    UniqueConstraint("tenant", "id"),
)

# One row: the process that took over last. What a leader writes is refused under another token.
leader = Table(
    "prover_leader",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("token", BigInteger, nullable=False),
    Column("holder", Text, nullable=False),
)

# How often the documents of a tenant changed, by calls that pass through the prover.
stale = Table(
    "prover_stale",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("marks", BigInteger, nullable=False),
)

account = Table(
    "prover_account",
    metadata,
    # The name of an account that the operator added. Of an end user a digest of the pair below.
    Column("id", Text, primary_key=True),
    Column("named_by", Text),  # whose key names an end user; null for an account itself
    Column("end_user", Text),
    Column("tenant", ForeignKey(tenant.c.name), nullable=False),
    Column("key_digest", LargeBinary(32), nullable=False, unique=True),
    # Public key: of registrations that bring none of their own.
    Column("dispute_key", LargeBinary(32)),
)

# Of whoever owns a tenant's documents: looks at what is committed, and asks nothing.
owner = Table(
    "prover_owner",
    metadata,
    Column("tenant", ForeignKey(tenant.c.name), primary_key=True),
    Column("key_digest", LargeBinary(32), nullable=False, unique=True),
)

window = Table(
    "prover_window",
    metadata,
    Column("name", Text, primary_key=True),
    Column("number", Integer, nullable=False, unique=True),  # order of creation
    Column("state", Text, nullable=False),
    Column("policy", LargeBinary, nullable=False),
    Column("embedder", LargeBinary, nullable=False),
    Column("log_seed", LargeBinary(32), nullable=False),  # of the key that signs its checkpoints
    Column("noise_seed", LargeBinary(32), nullable=False),  # s_W
    Column("pseudonym_key", LargeBinary(32), nullable=False),
    Column("slot_roots", LargeBinary),  # 32 bytes a slot, once committed
    Column("opening_salt", LargeBinary(32)),
    Column("opening_body", LargeBinary),
    Column("countersignature", LargeBinary),
    Column("unusable", Text),  # why this window answers no more, unless it is restored
    Column("stopped", Boolean, nullable=False),  # the operator stopped the queries early
    Column("entries_sent", BigInteger, nullable=False),  # entries below are known to the verifier
    Column("final_checkpoint", LargeBinary),
    Column("handed_over", Boolean, nullable=False),
    Column("challenge", LargeBinary),
    Column("verdict", LargeBinary),
    # Raised with each activation and version: who holds an earlier one in memory reads again.
    Column("generation", BigInteger, nullable=False),
)

index_version = Table(
    "prover_index_version",
    metadata,
    Column("window", ForeignKey(window.c.name), primary_key=True),
    Column("tenant", ForeignKey(tenant.c.name), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("dimension", Integer, nullable=False),
    Column("ids", LargeBinary, nullable=False),  # canonical JSON list
    Column("content_digests", LargeBinary, nullable=False),
    Column("columns", LargeBinary, nullable=False),  # canonical JSON list, empty if none has any
    Column("norm_bound", Integer, nullable=False),
    Column("rows", LargeBinary, nullable=False),  # int8 or int16[N, d+4]
    Column("blindings", LargeBinary, nullable=False),
    Column("salts", LargeBinary, nullable=False),
    Column("commitments", LargeBinary, nullable=False),
    Column("root", LargeBinary(32), nullable=False),
    Column("proof", LargeBinary, nullable=False),
    Column("marks", BigInteger, nullable=False),  # changes of the documents that it has taken up
    Column("document_secret", LargeBinary(32)),  # k_t; null in windows without owners
    Column("id_keys", LargeBinary),  # 32 bytes a row; likewise
)

activation = Table(
    "prover_activation",
    metadata,
    Column("window", ForeignKey(window.c.name), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("message", LargeBinary, nullable=False),
)

# The seeds of later epochs; that of epoch 1 stands with the window.
seed_epoch = Table(
    "prover_seed_epoch",
    metadata,
    Column("window", ForeignKey(window.c.name), primary_key=True),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("noise_seed", LargeBinary(32), nullable=False),
    Column("slot_roots", LargeBinary, nullable=False),  # 32 bytes a slot; empty without noise
)

# What time-stamping authorities gave, of opening and final checkpoint.
time_stamp = Table(
    "prover_time_stamp",
    metadata,
    Column("window", ForeignKey(window.c.name), primary_key=True),
    Column("which", Text, primary_key=True),
    Column("authority", Text, primary_key=True),  # its URL
    Column("size", BigInteger, nullable=False),
    Column("not_after", BigInteger, nullable=False),  # seconds
    Column("token", LargeBinary, nullable=False),
)

# Salt and body of each leaf: the ledger's own tables hold their digests only. With a record stand
# what opens it and what left, whatever the store holds by then: a retry gets it again.
entry = Table(
    "prover_entry",
    metadata,
    Column("window", ForeignKey(window.c.name), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("salt", LargeBinary(32), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("account", Text),  # from here on of records; null in other entries
    Column("counter", Integer),
    Column("issued", BigInteger),
    Column("openings", LargeBinary),  # canonical JSON, see RecordOpenings
    Column("request", LargeBinary(32)),  # SHA-256 of its canonical bytes; null if nothing left
    Column("delivery", LargeBinary),  # canonical JSON, see Delivery; likewise
    Column("ties", LargeBinary),  # the proof of the ties opening that left, if there is one
    # The database refuses a second record for a counter, whatever the code does (check 8).
    UniqueConstraint("window", "account", "counter"),
    Index("prover_entry_requests", "account", "request", "issued"),
)

registration = Table(
    "prover_registration",
    metadata,
    Column("window", ForeignKey(window.c.name), primary_key=True),
    Column("account", ForeignKey(account.c.id), primary_key=True),
    Column("pseudonym", LargeBinary(32), nullable=False),
    Column("tenant", ForeignKey(tenant.c.name), nullable=False),
    Column("slot", Integer, nullable=False),
    Column("anchor", LargeBinary(32)),
    Column("dispute_key", LargeBinary(32)),
    Column("position", BigInteger, nullable=False),  # of its log entry
    Column("counter", Integer, nullable=False),  # logged queries, so the next c
    Column("last_time", BigInteger, nullable=False),  # nothing is dated before, milliseconds
    Index("prover_registration_slots", "window", "slot"),
    Index("prover_registration_pseudonyms", "window", "pseudonym"),
)

idempotency = Table(
    "prover_idempotency",
    metadata,
    Column("account", Text, primary_key=True),
    Column("key", LargeBinary(32), primary_key=True),  # SHA-256 of the account's key
    Column("window", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    ForeignKeyConstraint(["window", "position"], ["prover_entry.window", "prover_entry.position"]),
    Index("prover_idempotency_places", "window", "position"),
)

promise = Table(
    "prover_promise",
    metadata,
    Column("window", ForeignKey(window.c.name), primary_key=True),
    Column("account", ForeignKey(account.c.id), primary_key=True),
    Column("counter", Integer, primary_key=True, autoincrement=False),
    Column("message", LargeBinary, nullable=False),  # the promise as sent
    Column("nonce", LargeBinary(32)),  # once revealed
)

# Questions that rows have paid for. Which rows did is a secret that no key of the window opens.
charge = Table(
    "prover_charge",
    metadata,
    Column("window", Text, primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("tenant", Text, nullable=False),
    Column("number", BigInteger, nullable=False),  # n_t
    Column("account", Text, nullable=False),
    Column("counter", Integer, nullable=False),
    Column("request", LargeBinary(32), nullable=False),  # SHA-256 of its canonical bytes
    Column("time", BigInteger, nullable=False),  # milliseconds
    Column("openings", LargeBinary, nullable=False),  # canonical JSON, see ChargeOpenings
    Column("rows", LargeBinary, nullable=False),  # D_t: positions, 4 bytes each, rising
    Column("blinding", LargeBinary(32), nullable=False),  # rho_t
    ForeignKeyConstraint(["window", "position"], ["prover_entry.window", "prover_entry.position"]),
    # Two of one number would have been charged without seeing each other.
    UniqueConstraint("window", "tenant", "number"),
    UniqueConstraint("window", "account", "counter"),
    Index("prover_charge_requests", "window", "account", "request", "time"),
)

# One for each charge: who answers twice is refused by the database.
generated = Table(
    "prover_generated",
    metadata,
    Column("window", Text, primary_key=True),
    Column("charge", BigInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),  # of the answer's or the void's entry
    Column("answer", LargeBinary),  # canonical JSON; none of a void
    Column("salt", LargeBinary(32)),  # salt_a
    Column("leaves", BigInteger, nullable=False),  # milliseconds, not before
    Column("made_of", LargeBinary),  # canonical JSON; where the policy has answers replayed
    ForeignKeyConstraint(["window", "charge"], ["prover_charge.window", "prover_charge.position"]),
    ForeignKeyConstraint(["window", "position"], ["prover_entry.window", "prover_entry.position"]),
    Index("prover_generated_places", "window", "position"),
)

# Stored before they are delivered: a proof is made once, also across restarts.
evidence = Table(
    "prover_evidence",
    metadata,
    Column("window", ForeignKey(window.c.name), primary_key=True),
    Column("call", Text, primary_key=True),  # by which it is handed over
    Column("message", LargeBinary, nullable=False),
    Column("delivered", Boolean, nullable=False),
)

response = Table(
    "prover_response",
    metadata,
    Column("window", ForeignKey(window.c.name), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("message", LargeBinary, nullable=False),
    Column("delivered", Boolean, nullable=False),
)

# Of a finished window: from this row on nothing but its public part is given.
deletion = Table(
    "prover_deletion",
    metadata,
    Column("window", ForeignKey(window.c.name), primary_key=True),
    Column("statement", LargeBinary, nullable=False),  # signed; shown once it is done
    Column("done", Boolean, nullable=False),
)

# Who exported records of an account: signed and chained, and kept when the window is deleted.
access = Table(
    "prover_access",
    metadata,
    Column("window", ForeignKey(window.c.name), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("message", LargeBinary, nullable=False),  # an EvidenceAccess, canonical JSON
)
