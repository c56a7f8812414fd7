"""Check a receipt file apart from the client that received it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragaudit.client.group import CoreOperations
from ragaudit.client.transport import Service
from ragaudit.client.window import Pins, Window, authenticate
from ragaudit.encoding.canonical_json import loads
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.ledger.policy import Policy
from ragaudit.ledger.receipt_check import Embed, StepResult, check_receipt_file
from ragaudit.ledger.receipts import ReceiptFile

if TYPE_CHECKING:
    from ragaudit.embedders.base import Embedder

__all__ = [
    "check",
    "fetch_window",
    "load_embedder",
    "read_policy_digest",
    "read_receipt",
    "read_window",
    "window_name",
]

MAX_FILE_BYTES = 2**28


def read_receipt(path: Path) -> ReceiptFile:
    """Return the receipt file at ``path``; MalformedError if it is none."""
    return ReceiptFile.parse(_read(path))


def read_window(path: Path, pins: Pins) -> Window:
    """Return the window saved from `GET /v1/windows/{w}`; raises as `authenticate`."""
    try:
        return authenticate(json.loads(_read(path)), pins)
    except ValueError as error:
        raise MalformedError("not JSON", where=str(path)) from error


def fetch_window(prover_url: str, file: ReceiptFile, pins: Pins) -> Window:
    """Return the receipt's window as the provider shows it."""
    service = Service(prover_url)
    try:
        return authenticate(service.get(f"/v1/windows/{window_name(file)}"), pins)
    finally:
        service.close()


def window_name(file: ReceiptFile) -> str:
    """The window that a receipt names."""
    return file.public.record.window


def read_policy_digest(path: Path) -> bytes:
    """Return the digest of the policy at ``path``, canonical JSON."""
    return Policy.from_json(loads(_read(path).rstrip(b"\n"))).digest


def load_embedder(window: Window) -> "Embedder | None":
    """Return the committed embedder if it is installed here, else None."""
    try:
        from ragaudit.embedders import registry  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        return None
    name = window.embedder.get("name")
    if name not in registry.names():
        return None
    embedder = registry.load(str(name))
    if embedder.manifest().digest() != window.view.opening.embedder_digest:
        return None
    return embedder


def check(
    file: ReceiptFile, window: Window, embedder: "Embedder | None", anchor: bytes | None
) -> list[StepResult]:
    """Run the ten steps; raises ReceiptRejected naming the first that fails."""
    embed = None if embedder is None else _embed(embedder)
    return check_receipt_file(file, window.view, CoreOperations(), anchor=anchor, embed=embed)


def _embed(embedder: "Embedder") -> Embed:
    from ragaudit.embedders.quantised import embed_quantised  # noqa: PLC0415 - an extra

    def embed(texts: Sequence[str]) -> Any:
        return embed_quantised(embedder, texts).tolist()

    return embed


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise MalformedError("file too long", where=str(path))
        return path.read_bytes()
    except OSError as error:
        raise RefusedError(f"cannot be read: {error.strerror}", where=str(path)) from error
