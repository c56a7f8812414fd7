"""Time stamps of the checkpoint of a receipt, by an authority of the reader's own choice."""

import json
from pathlib import Path
from typing import Annotated

import httpx
import typer
from ragaudit.client import offline
from ragaudit.client.quorum import read_proofs
from ragaudit.client.state import write_durably
from ragaudit.encoding.commands import failing, of_file
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.encoding.settings import service_url
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.log.checkpoints import Checkpoint, parse_checkpoint
from ragaudit.ledger.log.timestamps import (
    MAX_TOKEN_BYTES,
    REQUEST_TYPE,
    Stamp,
    StampRequest,
    read_roots,
    verify_stamp,
)

TIMEOUT_SECONDS = 30.0

STAMP_EXAMPLES = """Example:

  ragaudit receipt stamp answer.json --authority https://tsa.example --roots tsa-roots.pem

Exit status: 0 stamped; 1 the authority's answer does not verify; 3 it does not answer, or the
receipt has no proof yet."""

STAMPED_EXAMPLES = """Example:

  ragaudit receipt stamped answer.json --token answer.json.tsr --roots tsa-roots.pem

Exit status: 0 the checkpoint existed by the time that is printed; 1 the stamp does not say so."""

Subject = Annotated[Path, typer.Argument(help="Receipt file, public half, or checkpoint.")]
Roots = Annotated[Path, typer.Option("--roots", help="PEM: the authorities that you trust.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def stamp(
    file: Subject,
    authority: Annotated[str, typer.Option("--authority", help="URL of the authority.")],
    roots: Roots,
    output: Annotated[
        Path | None, typer.Option("--output", help="The stamp; <file>.tsr by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Have the checkpoint of a receipt stamped, and keep the stamp beside it."""
    target = output or file.with_name(file.name + ".tsr")
    with failing(as_json):
        checkpoint = read_checkpoint(file)
        with of_file(roots):
            trusted = read_roots(offline.read_bytes(roots))
        request = StampRequest.of(checkpoint)
        token = _ask(service_url(authority, "--authority"), request.body)
        found = verify_stamp(token, checkpoint, trusted, nonce=request.nonce)
        # Only after its check: a false one must not replace a good one.
        write_durably(target, token)
    _show(found, checkpoint, as_json)


def stamped(
    file: Subject,
    token: Annotated[Path, typer.Option("--token", help="The stamp, as it was kept.")],
    roots: Roots,
    as_json: AsJson = False,
) -> None:
    """Check a kept stamp offline, and say by when the checkpoint existed."""
    with failing(as_json):
        checkpoint = read_checkpoint(file)
        with of_file(roots):
            trusted = read_roots(offline.read_bytes(roots))
        with of_file(token):
            found = verify_stamp(offline.read_bytes(token), checkpoint, trusted)
    _show(found, checkpoint, as_json)


def read_checkpoint(path: Path) -> Checkpoint:
    """Return the checkpoint of a receipt's proof, or of a note; no signature is verified.

    Args:
        path: of a receipt file, of its public half, or of a checkpoint note.

    Raises:
        MalformedError: neither of the two kinds of file.
        UnavailableError: the receipt has no inclusion proof yet.
    """
    data = offline.read_bytes(path)
    if data.startswith(b"{"):
        public = offline.public_half(offline.read_file(path), path)
        # Of an answer in words that of the answer: the log of then has its charge, too.
        data = read_proofs(public, path)[-1].checkpoint
    with of_file(path):
        return parse_checkpoint(data).checkpoint


def _ask(url: str, body: bytes) -> bytes:
    try:
        with httpx.Client(timeout=TIMEOUT_SECONDS) as client:
            headers = {"Content-Type": REQUEST_TYPE, "Accept-Encoding": "identity"}
            with client.stream("POST", url, content=body, headers=headers) as answer:
                if not answer.is_success:
                    raise UnavailableError(f"it answered {answer.status_code}", where=url)
                token = bytearray()
                for part in answer.iter_raw():
                    token += part
                    if len(token) > MAX_TOKEN_BYTES:
                        raise MalformedError("answer too long", where=url)
                return bytes(token)
    except httpx.HTTPError as error:
        raise UnavailableError(f"no answer: {type(error).__name__}", where=url) from None


def _show(found: Stamp, checkpoint: Checkpoint, as_json: bool) -> None:
    if as_json:
        document = {
            "origin": checkpoint.origin,
            "size": checkpoint.head.size,
            "not_after": found.not_after,
            "serial": str(found.serial),
            "policy": found.policy,
        }
        typer.echo(json.dumps(document))
        return
    typer.echo(
        f"{checkpoint.origin} had its {checkpoint.head.size} entries "
        f"by {rfc3339(1000 * found.not_after)}, says the authority"
    )
