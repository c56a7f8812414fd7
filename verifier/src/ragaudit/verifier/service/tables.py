"""Tables of the verifier. Evidence is kept as items, in chunks, under the names it has in a bundle.

Nothing here opens a commitment of an account that was not sampled; the salt of the activation chain
gives its seed only together with the secret file.

Who changes a table adds a migration (`service.migrations`): a test compares both.
"""

from ragaudit.serving.jobs.job import job_tables
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

ORIGIN_LENGTH = 160

metadata = MetaData()

jobs = job_tables(metadata)

clock = Table(
    "clock",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("latest", BigInteger, nullable=False),
    # `ragaudit.verifier.history.Standing`: what the fence compares.
    Column("writes", BigInteger, nullable=False),
    Column("mark", LargeBinary(32), nullable=False),
    Column("before", LargeBinary(32), nullable=False),
)

provider = Table(
    "provider",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("key", LargeBinary(32), nullable=False),
    Column("added", BigInteger, nullable=False),
)

window = Table(
    "window",
    metadata,
    Column("origin", String(ORIGIN_LENGTH), primary_key=True),
    Column("provider", String(64), nullable=False),
    Column("name", String(64), nullable=False, index=True),  # anyone else's window may have it
    Column("origin_hash", LargeBinary(32), nullable=False, unique=True),
    Column("policy_digest", LargeBinary(32), nullable=False),
    Column("log_key", LargeBinary(32)),  # none if check 1 will not read it
    Column("chain_salt", LargeBinary(32), nullable=False),
    Column("registered", BigInteger, nullable=False),
    Column("countersigned", BigInteger),
    Column("refused", BigInteger),
    Column("records", BigInteger),
    Column("closed", BigInteger),
    Column("listed", BigInteger),
    Column("challenged", BigInteger),
    Column("deadline", BigInteger),
    Column("sealed", BigInteger),
    Column("decided", BigInteger),
    # A log key signs for one window only (docs/spec/06-ledger.md §6.4).
    UniqueConstraint("provider", "log_key"),
)

item = Table(
    "item",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("received", BigInteger, nullable=False),
)

chunk = Table(
    "chunk",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("name", String(200), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)

checkpoint = Table(
    "checkpoint",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("root", LargeBinary(32), nullable=False),
    Column("time", BigInteger, nullable=False),  # seconds, as cosigned
    Column("note", LargeBinary, nullable=False),
)

entry = Table(
    "entry",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("index", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("salt", LargeBinary(32), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("pseudonym", LargeBinary(32)),  # of a registration
    Index("entry_pseudonym", "window", "pseudonym"),
)

activation = Table(
    "activation",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("a", Integer, primary_key=True, autoincrement=False),
    Column("message", LargeBinary, nullable=False),
)

# Receipts, refusals, claims and statements: canonical JSON under what identifies it.
submission = Table(
    "submission",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("identity", LargeBinary(64), primary_key=True),
    Column("account", LargeBinary(32), nullable=False),  # whose share it counts against
    Column("held", Boolean, nullable=False),  # whether that account signed for it
    Column("received", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
)

# What they take together: no sum over all of them for each that comes.
submission_space = Table(
    "submission_space",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("account", LargeBinary(32), primary_key=True),
    Column("bytes", BigInteger, nullable=False),
)

# What third parties say of a checkpoint, as the provider brought it; one of a kind and identity.
attestation = Table(
    "attestation",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("identity", LargeBinary(32), primary_key=True),
    Column("document", LargeBinary, nullable=False),
)

dispute = Table(
    "dispute",
    metadata,
    Column("window", String(ORIGIN_LENGTH), primary_key=True),
    Column("identity", LargeBinary(32), primary_key=True),
    Column("pseudonym", LargeBinary(32), nullable=False),
    Column("position", BigInteger, nullable=False),  # leaf index of the record
    Column("answer_digest", LargeBinary(32), nullable=False),
    Column("file_digest", LargeBinary(32), nullable=False),
    Column("received", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("public", LargeBinary),  # of the file, once it was judged
    Column("file", LargeBinary),  # of an upheld dispute about a record that was not sampled
    Column("finding", LargeBinary),
    Column("step", Integer),  # that fails; 0: dismissed; absent: not judged
    Index("dispute_account", "window", "pseudonym"),
    Index("dispute_record", "window", "position"),
)
