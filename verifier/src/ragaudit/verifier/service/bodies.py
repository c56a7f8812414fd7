"""Request bodies: read up to a limit, hashed on the way, parsed strictly.

JSON bodies may be written with any spacing and key order, but duplicate keys, floating point,
lone surrogates, deep nesting and integers beyond ±(2^53 - 1) are refused, as are unknown members.
"""

import errno
import hashlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import IO, Annotated, Any, BinaryIO, TypeVar, cast

from fastapi import Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import hex_decode
from ragaudit.verifier.service.errors import StorageError, TooLargeError

MEMORY_BYTES = 2**20  # longer bodies wait on disk
MAX_BATCH = 1000

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Body:
    """A body received in full: a file open for reading, its length and SHA-256."""

    file: BinaryIO
    size: int
    digest: bytes

    def read(self) -> bytes:
        self.file.seek(0)
        return self.file.read()


async def receive(request: Request, limit: int, memory: int = MEMORY_BYTES) -> AsyncIterator[Body]:
    """Yield the body; it is closed and forgotten afterwards.

    Args:
        limit: bytes that are read at most.
        memory: bytes of it that are held in memory at most; a longer one waits on disk.

    Raises:
        TooLargeError: more than ``limit`` bytes, announced or sent.
    """
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdecimal() and int(announced[:19]) > limit:
        raise TooLargeError("body too long", expected=f"at most {limit} bytes")
    digest, size = hashlib.sha256(), 0
    with tempfile.SpooledTemporaryFile(max_size=memory) as file:
        async for data in request.stream():
            size += len(data)
            if size > limit:
                raise TooLargeError("body too long", expected=f"at most {limit} bytes")
            digest.update(data)
            _keep(file, data)
        yield Body(cast(BinaryIO, file), size, digest.digest())


def _keep(file: IO[bytes], data: bytes) -> None:
    try:
        file.write(data)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, type(error).__name__)
        raise StorageError(f"a body cannot be kept: {name}", expected="a disk with room") from None


def parse(model: type[Model], data: bytes) -> Model:
    """The document of a JSON body.

    Raises:
        MalformedError: not JSON, not in the canonical value space, or not of this model.
    """
    value = canonical_json.loads_any(data)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = "/".join(map(str, first["loc"]))
        raise MalformedError(first["msg"], where=where or "body") from None


def json_object(data: bytes) -> dict[str, Any]:
    """The object of a JSON body; MalformedError for anything else."""
    value = canonical_json.loads_any(data)
    if not isinstance(value, dict):
        raise MalformedError("not an object", where="body")
    return value


def _hex(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("expected text in hexadecimal")
    try:
        return hex_decode(value)
    except MalformedError as error:
        raise ValueError(str(error)) from None


def _salt(value: object) -> object:
    data = _hex(value)
    if not isinstance(data, bytes) or len(data) != 32:
        raise ValueError("expected 32 bytes in hexadecimal")
    return data


_HEX = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}
_DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$"}

Hex = Annotated[bytes, BeforeValidator(_hex), Field(json_schema_extra=_HEX)]
Digest = Annotated[bytes, BeforeValidator(_salt), Field(json_schema_extra=_DIGEST)]


class Document(BaseModel):
    """A JSON object with exactly these members."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Registration(Document):
    """`POST /v1/windows`."""

    policy: dict[str, Any]
    embedder: dict[str, Any]


class OpeningRequest(Document):
    """`POST .../countersign`: the entry at index 0 and the checkpoint of the empty log."""

    opening: Hex
    salt: Digest
    empty_checkpoint: str


class EntryDocument(Document):
    """A log entry other than a record."""

    index: int = Field(ge=0, le=2**53 - 1)
    kind: str = Field(max_length=16)
    salt: Digest
    body: Hex


class RegistrationDocument(Document):
    """Member ``registration`` of what accounts submit: their own, as the prover shows it."""

    index: int = Field(ge=0, le=2**53 - 1)
    salt: Digest
    body: Hex
    proof: str = Field(max_length=2**19)


class Entries(Document):
    """`POST .../entries`."""

    entries: list[EntryDocument] = Field(max_length=MAX_BATCH)


class Held(Document):
    """What an account signed for; ``registration`` is its own, which V may not have."""

    holder: dict[str, Any] | None = None
    registration: RegistrationDocument | None = None


class Receipts(Held):
    """`POST .../receipts`: public halves."""

    receipts: list[dict[str, Any]] = Field(max_length=MAX_BATCH)


class Refusals(Held):
    """`POST .../refusals`."""

    refusals: list[dict[str, Any]] = Field(max_length=MAX_BATCH)


class Claim(Document):
    """`POST .../claims`: a promise and its revealed nonce."""

    promise: dict[str, Any]
    nonce: Digest
    registration: RegistrationDocument | None = None


class Disputes(Document):
    """`POST .../disputes`: of one account, whose registration V may not have been given yet."""

    disputes: list[dict[str, Any]] = Field(max_length=MAX_BATCH)
    registration: RegistrationDocument | None = None


class Statement(Document):
    """`POST .../statements`: an account says that a registration is its own."""

    statement: dict[str, Any]
    registration: RegistrationDocument | None = None


class Finding(Document):
    """`POST .../findings`: the arbiter's finding, and the public half that it is about."""

    finding: dict[str, Any]
    public: dict[str, Any]


class Close(Document):
    """`POST .../close`."""

    final_checkpoint: str
