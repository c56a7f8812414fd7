"""Tables of the ledger. One database may hold the logs of several windows.

`log_head` is the row that a writer locks; `entry.position` comes from its size, never from a
sequence of the database, which leaves holes after a rollback.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
)

metadata = MetaData()

NO_CHECKPOINT = -1

log = Table(
    "ledger_log",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("origin", Text, nullable=False, unique=True),
    Column("verifier_key", Text, nullable=False),
)

log_head = Table(
    "ledger_log_head",
    metadata,
    Column("log_id", ForeignKey(log.c.id), primary_key=True, autoincrement=False),
    Column("size", BigInteger, nullable=False),
    Column("root_hash", LargeBinary(32), nullable=False),
    Column("frozen", Boolean, nullable=False),
    Column("checkpoint_size", BigInteger, nullable=False),  # of the last signed one, or -1
)

entry = Table(
    "ledger_entry",
    metadata,
    Column("log_id", ForeignKey(log.c.id), primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("leaf_data", LargeBinary(32), nullable=False),
)

tile = Table(
    "ledger_tile",
    metadata,
    Column("log_id", ForeignKey(log.c.id), primary_key=True, autoincrement=False),
    Column("level", SmallInteger, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("width", SmallInteger, nullable=False),  # only the widest version is kept
    Column("hashes", LargeBinary(8192), nullable=False),
)

checkpoint = Table(
    "ledger_checkpoint",
    metadata,
    Column("log_id", ForeignKey(log.c.id), primary_key=True, autoincrement=False),
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("note", LargeBinary, nullable=False),
    Column("cosignatures", SmallInteger, nullable=False),  # of the demanded ones, in the note
    Column("quorum", Boolean, nullable=False),  # whether that of the further ones is reached, too
)
