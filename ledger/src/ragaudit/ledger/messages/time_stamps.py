"""Time stamps of a window's checkpoints, as they are handed over and kept (docs/spec 8.3, 10.1)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.log.timestamps import MAX_TOKEN_BYTES
from ragaudit.ledger.messages.evidence import EvidenceList
from ragaudit.ledger.messages.fields import Fields, JsonMessage

MAX_SIZE: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class TimeStamp(JsonMessage):
    """An authority's token over the checkpoint of a size; nothing of it is verified.

    Attributes:
        size: of the checkpoint, in entries.
        token: DER, as it came.
    """

    MEMBERS: ClassVar[str] = "size token"
    WHERE: ClassVar[str] = "time stamp"

    size: int
    token: bytes = field(repr=False)

    def _members(self) -> dict[str, Any]:
        return {"size": self.size, "token": b64_encode(self.token)}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        text = f.text("token", 1, 4 * MAX_TOKEN_BYTES // 3 + 4)
        try:
            token = b64_decode(text)
        except MalformedError as error:
            raise MalformedRecord(error.what, where=f.path("token"), expected="base64") from error
        return cls(f.integer("size", 1, MAX_SIZE), token)


class TimeStamps(EvidenceList[TimeStamp]):
    """`public/time-stamps.json`: by rising size and digest of the token."""

    read = staticmethod(TimeStamp.from_json)
