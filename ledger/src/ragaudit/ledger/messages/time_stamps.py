"""Time stamps of a window's checkpoints, as they are handed over and kept (docs/spec 8.3, 10.1)."""

from dataclasses import field
from typing import Annotated, Final

from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.ledger.log.timestamps import MAX_TOKEN_BYTES
from ragaudit.ledger.messages.evidence import EvidenceList
from ragaudit.ledger.messages.kernel import MAX_TIME, Converted, Integer, Message, Text

_TOKEN: Final = Text(1, 4 * MAX_TOKEN_BYTES // 3 + 4)


class TimeStamp(Message, where="time stamp"):
    """An authority's token over the checkpoint of a size; nothing of it is verified.

    Attributes:
        size: of the checkpoint, in entries.
        token: DER, as it came.
    """

    size: Annotated[int, Integer(1, MAX_TIME)]
    token: Annotated[bytes, Converted(_TOKEN, b64_decode, b64_encode, "base64")] = field(repr=False)


class TimeStamps(EvidenceList[TimeStamp]):
    """`public/time-stamps.json`: by rising size and digest of the token."""

    read = staticmethod(TimeStamp.from_json)
