"""Time stamps of a window's checkpoints, as they are handed over and kept (docs/spec 8.3, 10.1)."""

from dataclasses import field
from typing import Annotated, Any

from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.ledger.log.timestamps import MAX_TOKEN_BYTES
from ragaudit.ledger.messages.evidence import EvidenceList
from ragaudit.ledger.messages.kernel import MAX_TIME, Form, Integer, Message, Text


class _Token(Form):
    """Bytes in base64."""

    _text = Text(1, 4 * MAX_TOKEN_BYTES // 3 + 4)

    def __init__(self) -> None:
        super().__init__("base64", self._text.schema, b64_encode)

    def read(self, value: Any) -> bytes:
        return b64_decode(self._text.read(value))


class TimeStamp(Message, where="time stamp"):
    """An authority's token over the checkpoint of a size; nothing of it is verified.

    Attributes:
        size: of the checkpoint, in entries.
        token: DER, as it came.
    """

    size: Annotated[int, Integer(1, MAX_TIME)]
    token: Annotated[bytes, _Token()] = field(repr=False)


class TimeStamps(EvidenceList[TimeStamp]):
    """`public/time-stamps.json`: by rising size and digest of the token."""

    read = staticmethod(TimeStamp.from_json)
