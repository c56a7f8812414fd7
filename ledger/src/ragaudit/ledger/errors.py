"""Errors of the ledger.

    RagauditError
    ├── MalformedError    MalformedNote, MalformedProof, MalformedTile, MalformedRecord,
    │                     MalformedPolicy, MalformedTrustPolicy
    ├── RejectedError     ProofRejected, NoteRejected, ReceiptRejected (StepRejected),
    │                     CommitmentRejected, ChainRejected, StampRejected
    ├── RefusedError      LogFrozen, CheckpointConflict, RestoredBackup
    │   └── NotFound      UnknownResource
    ├── UnavailableError  StoreUnavailable
    └── InternalError     CorruptLog, StatementRefused

Malformed: the bytes are not in the one accepted encoding. Rejected: well-formed and false.
Refused: we could, and will not. Unavailable: not now. Internal: what we stored contradicts
itself.
"""

from ragaudit.encoding.errors import (
    InternalError,
    MalformedError,
    NotFound,
    RagauditError,
    RefusedError,
    RejectedError,
    UnavailableError,
)


class MalformedNote(MalformedError):
    """Not a signed note, checkpoint, cosignature or request in its one accepted form."""


class MalformedProof(MalformedError):
    """A Merkle proof of the wrong length, or with a hash that is not 32 bytes."""


class MalformedTile(MalformedError):
    """Not a tile path, tile or entry bundle of C2SP tlog-tiles."""


class MalformedRecord(MalformedError):
    """Not the body of a log entry, or a receipt, promise, refusal or message between parties."""


class MalformedPolicy(MalformedError):
    """A policy document with a missing, unknown, ill-typed or out-of-range field."""


class MalformedTrustPolicy(MalformedError):
    """A tlog-policy file with a line that is not of its format; the error has its number."""


class ProofRejected(RejectedError):
    """A well-formed Merkle proof whose recomputed root is another one."""


class NoteRejected(RejectedError):
    """A note without the signatures that the relying party demands."""


class ReceiptRejected(RejectedError):
    """A receipt, promise or refusal whose parts do not bind each other."""


class StepRejected(ReceiptRejected):
    """A receipt file that fails ``step`` of docs/spec 5.9."""

    step: int

    @classmethod
    def at(cls, step: int, name: str, error: RagauditError) -> "StepRejected":
        """The rejection of a step that raised ``error``."""
        what = f"{error.where}: {error.what}" if error.where else error.what
        rejected = cls(what, where=f"step {step} ({name})", expected=error.expected)
        rejected.step = step
        return rejected


class CommitmentRejected(RejectedError):
    """An opening that does not belong to the commitment."""


class ChainRejected(RejectedError):
    """A value that is not the preimage which a hash chain demands."""


class StampRejected(RejectedError):
    """A time stamp that does not verify, or is of something else."""


class LogFrozen(RefusedError):
    """The window's log is closed: nothing may be appended any more."""


class CheckpointConflict(RefusedError):
    """Another writer stored a checkpoint in between, or it would contradict a signed one."""


class RestoredBackup(RefusedError):
    """The database is behind the fence: rows that were once durable are gone."""


class StatementRefused(InternalError):
    """The database refused a statement, such as one with a key twice; its transaction is undone."""


class CorruptLog(InternalError):
    """What the database holds contradicts itself: a tile, a leaf or a signed checkpoint."""


class UnknownResource(NotFound):
    """No such log, checkpoint, entry or tile (below the last signed checkpoint)."""


class StoreUnavailable(UnavailableError):
    """The database did not take the transaction: locked, full, or gone. Nothing was written."""
