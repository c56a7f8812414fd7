"""What logs, and those who sign beside them, say of receipts: commands of `ragaudit receipt`.

A record that is missing (docs/spec 6.11), the records of an account (5.14), a provider's windows in
a row (8.11), the cosigners of a checkpoint and its time stamps.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from ragaudit.client.command_options import (
    AllowUnpinned,
    AsJson,
    PinnedKey,
    PinnedPolicy,
    Prover,
    SavedWindow,
)
from ragaudit.encoding.commands import ExitCode, failing, of_file
from ragaudit.encoding.errors import (
    InvalidArgumentError,
    MalformedError,
    UnavailableError,
    UnsupportedError,
)
from ragaudit.encoding.options import public_key
from ragaudit.encoding.settings import service_url
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import rfc3339

if TYPE_CHECKING:
    from ragaudit.client.errors import StateConflict
    from ragaudit.ledger.log.checkpoints import Checkpoint, SignedCheckpoint
    from ragaudit.ledger.log.notes import VerifierKey
    from ragaudit.ledger.log.tiles import Tile, TileHashSource
    from ragaudit.ledger.log.timestamps import Stamp
    from ragaudit.ledger.log.tlog_policy import QuorumFinding, TrustPolicy
    from ragaudit.ledger.log.tlog_proof import TlogProof
    from ragaudit.ledger.messages.accounts import AccountProof
    from ragaudit.ledger.messages.handover import Entry
    from ragaudit.ledger.messages.missing import MissingEntry, MissingRecord
    from ragaudit.ledger.messages.policy import Policy
    from ragaudit.ledger.messages.receipts import PublicPart, PublicReceipt
    from ragaudit.ledger.messages.window_chain import Link, WindowChain

__all__ = [
    "PublishedLog",
    "app",
    "of_record",
    "read_checkpoint",
    "read_finding",
    "read_trust",
]

app = typer.Typer()
_CHECKPOINT = "checkpoint"
_GONE = 404
_STAMPING_SECONDS = 30.0


@dataclass(frozen=True)
class PublishedLog:
    """The files of one log as it is published, C2SP tlog-tiles, over HTTP or in a folder.

    Nothing that is read here is believed: a checkpoint is verified, and what is computed from tiles
    is compared with it.

    Attributes:
        read: returns the bytes at a path below the log's prefix, None where there is no such file.
    """

    read: Callable[[str], bytes | None]

    @classmethod
    def at(cls, place: str) -> "PublishedLog":
        """Return the log that is published at a place.

        Args:
            place: its prefix, a URL or a folder.
        """
        if place.startswith(("http://", "https://")):
            return cls(lambda path: _fetched(place, path))
        return cls(lambda path: _stored(Path(place), path))

    def checkpoint(self) -> bytes:
        """Return the log's last published checkpoint, unverified.

        Raises:
            MalformedError: none is published here.
            UnavailableError, RefusedError, InternalError: as `Service.request`.
        """
        note = self.read(_CHECKPOINT)
        if note is None:
            raise MalformedError("no checkpoint is published", where=_CHECKPOINT)
        return note

    def hashes(self, size: int) -> "TileHashSource":
        """Return the hashes of the log's first leaves, read as they are asked for.

        Args:
            size: of a verified checkpoint, in leaves.
        """
        from ragaudit.ledger.log.tiles import TileHashSource

        return TileHashSource(size, self._tile)

    def _tile(self, tile: "Tile") -> bytes:
        from ragaudit.ledger.log.tiles import TILE_WIDTH, tile_path
        from ragaudit.ledger.log.tree import HASH_BYTES

        data = self.read(tile_path(tile))
        if data is None and tile.width < TILE_WIDTH:
            # A partial tile may be deleted once the full one is there (C2SP tlog-tiles).
            whole = self.read(tile_path(replace(tile, width=TILE_WIDTH)))
            data = None if whole is None else whole[: tile.width * HASH_BYTES]
        if data is None:
            raise MalformedError("the tile is not published", where=tile_path(tile))
        return data


def _fetched(prefix: str, path: str) -> bytes | None:
    from ragaudit.client.blocking import call
    from ragaudit.client.errors import InvalidReply, ProviderRefusal

    try:
        return call(prefix, lambda service: service.request("GET", f"/{path}"))
    except ProviderRefusal as error:
        if error.status == _GONE:
            return None
        raise
    except InvalidReply:
        # A static server says 404 without a problem document; its words do not matter here.
        return None


def _stored(folder: Path, path: str) -> bytes | None:
    try:
        return (folder / path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnavailableError(f"cannot be read: {error.strerror}", where=path) from error


_PROVE_EXAMPLES = """Examples:

  ragaudit receipt prove-missing answer.json --prover https://rag.example --verifier-key 3b6a...
  -o missing.json

  ragaudit receipt prove-missing answer.json --window window.json --policy policy.json
  --log published-log --entries bundle/public/entries.json -o missing.json

Exit code: 0 the entry is missing, and the proof is written; 1 the receipt is not signed by the
provider, or the log shows what it did not sign; 2 an input that is unusable; 3 the log does not
answer; 4 nothing is proven: the entry is in the log, or may still come."""

_VERIFY_EXAMPLES = """Example:

  ragaudit receipt verify-missing missing.json --policy policy.json

Exit code: 0 it is proven that the provider signed a receipt for an entry that its log has not;
1 it is not; 2 an input that is unusable."""


@app.command("prove-missing", epilog=_PROVE_EXAMPLES)
def prove_missing(
    file: Annotated[Path, typer.Argument(help="Receipt file, or its public part alone.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the proof to.")],
    window: SavedWindow = None,
    prover: Prover = None,
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    log: Annotated[
        str | None,
        typer.Option("--log", help="URL or folder of the published log; else the provider's."),
    ] = None,
    entries: Annotated[
        Path | None,
        typer.Option(
            "--entries",
            help="public/entries.json of the verifier's bundle: shows that the log has ended.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prove that an entry of a receipt is not in the log, from what the log publishes.

    The entry is a record, or the charge or the answer of a generated answer. The proof needs
    nothing else to be checked: it shows the public part of the receipt only.
    """
    from ragaudit.client import offline
    from ragaudit.client.state import write_durably
    from ragaudit.ledger.log.checkpoints import verify_checkpoint
    from ragaudit.ledger.messages.missing import MissingEntry, MissingRecord
    from ragaudit.ledger.messages.receipts import GeneratedReceipt

    with failing(as_json):
        value = offline.read_file(file)
        source = offline.Source(window, prover, policy, verifier_key, allow_unpinned)
        target = source.of_receipt(value, file)
        if log is None and prover is None:
            raise InvalidArgumentError("where is the log?", expected="--log or --prover")
        published = PublishedLog.at(
            log or f"{str(prover).rstrip('/')}/v1/windows/{target.name}/log"
        )
        signed = verify_checkpoint(published.checkpoint(), target.view.policy.keys.log)
        hashes = published.hashes(signed.head.size)
        last = None if entries is None else _last(entries)
        proof: MissingRecord | MissingEntry | None
        public = offline.public_half(value, file)
        if isinstance(public, GeneratedReceipt):
            at, proof = public.answer.index, MissingEntry.find(public, signed, hashes, last)
        else:
            at, proof = public.index, MissingRecord.find(public, signed, hashes, last)
        if proof is None:
            raise _unproven(at, signed)
        # By the rules of whoever is shown it: a wrong tile must not become an accusation.
        proof.verify(target.view.policy)
        write_durably(out, proof.encode())
    _say(proof, signed, as_json)


@app.command("verify-missing", epilog=_VERIFY_EXAMPLES)
def verify_missing(
    file: Annotated[Path, typer.Argument(help="Proof, as prove-missing wrote it.")],
    policy: Annotated[Path, typer.Option("--policy", help="The policy of the window.")],
    as_json: AsJson = False,
) -> None:
    """Check offline that a receipt and the log of its window contradict each other.

    All keys are the policy's.
    """
    from ragaudit.client import offline
    from ragaudit.ledger.messages.missing import read_missing

    with failing(as_json):
        proof = offline.read_as(file, read_missing)
        signed = proof.verify(offline.read_policy(policy))
    _say(proof, signed, as_json)


def _last(path: Path) -> "Entry":
    from ragaudit.client import offline
    from ragaudit.ledger.messages.evidence import Entries

    entries = offline.read_as(path, Entries.parse).messages
    if not entries:
        raise MalformedError("no entries", where=str(path), expected="public/entries.json")
    return entries[-1]


def _unproven(index: int, signed: "SignedCheckpoint") -> "StateConflict":
    from ragaudit.client.errors import StateConflict

    if index < signed.head.size:
        return StateConflict("the entry is in the log", where=f"leaf {index}")
    return StateConflict(
        f"the log has {signed.head.size} entries: the entry may still come",
        where=f"leaf {index}",
        expected="a longer log, or its close entry (--entries)",
    )


def _say(proof: "MissingRecord | MissingEntry", signed: "SignedCheckpoint", as_json: bool) -> None:
    from ragaudit.ledger.messages.missing import MissingEntry

    index, size, origin = proof.index, signed.head.size, proof.receipt.origin
    ended = proof.shown.leaf is None
    if as_json:
        shown = "the end of the log" if ended else "another leaf"
        typer.echo(json.dumps({"origin": origin, "index": index, "size": size, "shown": shown}))
        return
    what = f"{proof.entry} " if isinstance(proof, MissingEntry) else ""
    typer.echo(f"The provider signed a receipt for the {what}entry {index} of {origin}.")
    if ended:
        typer.echo(f"Its log was closed with {size} entries.")
    else:
        typer.echo(f"Its log, of {size} entries, has another one there.")


_COUNT_EXAMPLES = """Examples:

  ragaudit receipt verify-count count.json --policy policy.json

  ragaudit receipt verify-count count.json --policy policy.json --receipt answer-1.json
  --receipt answer-2.json

Exit code: 0 the window's log says so, and counts all receipts that are given; 1 it does not say
so, or does not count one of them: that receipt and the proof contradict each other; 2 an input that
is unusable."""


@app.command("verify-count", epilog=_COUNT_EXAMPLES)
def verify_count(
    file: Annotated[
        Path, typer.Argument(help="Saved reply of GET /v1/windows/{window}/account/count.")
    ],
    policy: Annotated[Path, typer.Option("--policy", help="The policy of the window.")],
    receipt: Annotated[
        list[Path] | None,
        typer.Option("--receipt", help="Receipt file of the account that must be counted."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check offline which records the log of a closed window has of an account, or that of none.

    All keys are the policy's. That nothing is left out of the index is what check 22 of the
    window's verdict says.
    """
    from ragaudit.client import offline
    from ragaudit.ledger.messages.accounts import AccountProof

    with failing(as_json):
        terms = offline.read_policy(policy)
        proof = offline.read_as(file, AccountProof.parse)
        proof.verify(terms)
        for path in receipt or []:
            _check_counted(of_record(path), proof, terms, path)
    who, records = proof.pseudonym.hex(), proof.records
    if as_json:
        listed = None if records is None else list(records)
        typer.echo(json.dumps({"origin": proof.origin, "pseudonym": who, "records": listed}))
    elif records is None:
        typer.echo(f"{who} was not registered and has no record in {proof.origin}.")
    else:
        places = f": {', '.join(map(str, records))}" if records else ""
        typer.echo(f"{who} has exactly {len(records)} records in {proof.origin}{places}.")


def of_record(path: Path) -> "PublicReceipt":
    """Return the public part of a receipt of a record.

    Args:
        path: of a receipt file, or of a public part alone.

    Raises:
        UnsupportedError: it is of a generated answer.
        MalformedError: not a receipt.
    """
    from ragaudit.client import offline
    from ragaudit.ledger.messages.receipts import PublicReceipt

    public = offline.public_half(offline.read_file(path), path)
    # By the half itself: what the file around it says of its form is anybody's word.
    if not isinstance(public, PublicReceipt):
        raise UnsupportedError(
            "a receipt of a generated answer",
            where=str(path),
            expected="one of a record, which alone an account index counts; else `prove-missing`",
        )
    return public


def _check_counted(
    public: "PublicReceipt", proof: "AccountProof", policy: "Policy", path: Path
) -> None:
    from ragaudit.ledger.errors import ReceiptRejected

    # First whether it accuses anybody: whose receipt it is, and that the provider signed it.
    if public.origin != policy.origin or public.query.pseudonym != proof.pseudonym:
        raise MalformedError("of another account or log", where=str(path), expected="its receipt")
    public.verify(policy.keys.provider)
    if public.index not in (proof.records or ()):
        raise ReceiptRejected(
            f"entry {public.index} is not counted, and the provider signed a receipt for it",
            where=str(path),
        )


_WINDOWS_EXAMPLES = """Examples:

  ragaudit receipt verify-windows --prover https://rag.example --verifier-key 3b6a...

  ragaudit receipt verify-windows chain.json --verifier-key 3b6a... --json

Exit code: 0 every window but the first continues an earlier one; 1 something shown is false; 2 an
input that is unusable; 3 the provider does not answer; 5 nothing is false, and a later window
begins anew, so that nobody can tell what came before it."""


@app.command("verify-windows", epilog=_WINDOWS_EXAMPLES)
def verify_windows(
    file: Annotated[
        Path | None, typer.Argument(help="Saved reply of GET /v1/window-chain.")
    ] = None,
    prover: Annotated[
        str | None, typer.Option("--prover", help="URL: ask this provider for it.")
    ] = None,
    verifier_key: Annotated[
        list[PublicKey] | None,
        typer.Option(
            "--verifier-key",
            parser=public_key,
            metavar="HEX",
            help="Pin: a verifier's key (keys.verifier of the policy); repeatable.",
        ),
    ] = None,
    allow_unpinned: AllowUnpinned = False,
    as_json: AsJson = False,
) -> None:
    """Check that a provider's windows continue each other, each with a log key of its own."""
    from ragaudit.client.offline import pins_of

    with failing(as_json):
        given: list[PublicKey | None] = [*(verifier_key or [])] or [None]
        keys = [pins_of(None, key, allow_unpinned).verifier for key in given]
        chain = _chain(file, prover)
        links = chain.verify([key for key in keys if key is not None])
    if as_json:
        windows = [
            {
                "window": one.window,
                "log": one.log,
                "provider_key": one.provider_key.raw.hex(),
                "size": one.size,
                "continues": one.continues,
            }
            for one in links
        ]
        typer.echo(json.dumps({"provider": chain.provider, "windows": windows}))
    else:
        for before, link in zip([None, *links], links, strict=False):
            typer.echo(_line(link, before))
    if any(link.continues is None for link in links[1:]):
        raise typer.Exit(int(ExitCode.INCOMPLETE))


def _chain(file: Path | None, prover: str | None) -> "WindowChain":
    from ragaudit.client import offline
    from ragaudit.client.blocking import call
    from ragaudit.ledger.messages.window_chain import WindowChain

    # Not both: which of two replies counts would be a guess.
    if (file is None) == (prover is None):
        raise InvalidArgumentError("one chain is needed", expected="a file or --prover")
    if file is None:
        return WindowChain.from_json(
            call(str(prover), lambda service: service.get("/v1/window-chain"))
        )
    with of_file(file):
        return WindowChain.from_json(offline.read_json(file))


def _line(link: "Link", before: "Link | None") -> str:
    ended = "has not ended" if link.size is None else f"ended with {link.size} entries"
    continues = "begins anew" if link.continues is None else f"continues {link.continues}"
    # Receipts of each window verify under its own key alone: a reader must know where it changed.
    changed = before is not None and before.provider_key != link.provider_key
    signs = f"; new provider key {link.provider_key.raw.hex()}" if changed else ""
    return f"{link.window}: {continues}; {ended}; log key {link.log}{signs}"


_QUORUM_EXAMPLES = """Examples:

  ragaudit receipt quorum answer.json --trust cosigners.policy --log-key 'rag.example/...+5c...'

  ragaudit receipt quorum checkpoint --trust cosigners.policy

Exit code: 0 the quorum is reached, or none is asked; 1 a signature or the proof is false;
2 a line of the policy is malformed, named by its number; 3 the receipt has no proof yet;
5 the quorum is not reached."""


@app.command("quorum", epilog=_QUORUM_EXAMPLES)
def quorum(
    file: Annotated[Path, typer.Argument(help="Receipt file, public part, or checkpoint.")],
    trust: Annotated[Path, typer.Option("--trust", help="Your tlog-policy file.")],
    log_key: Annotated[
        str | None, typer.Option("--log-key", help="The log's vkey, if your policy lists no log.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say which cosigners of your own list stand behind a receipt, and whether they suffice."""
    from ragaudit.ledger.log.notes import VerifierKey

    with failing(as_json):
        key = None if log_key is None else VerifierKey.parse(log_key)
        finding = read_finding(file, read_trust(trust), key)
    if as_json:
        typer.echo(json.dumps(finding.to_json()))
    else:
        typer.echo(str(finding))
    if not finding.reached:
        raise typer.Exit(int(ExitCode.INCOMPLETE))


def read_trust(path: Path) -> "TrustPolicy":
    """Return the trust policy at ``path``, a tlog-policy file.

    Args:
        path: of the reader's own file.

    Raises:
        MalformedTrustPolicy: a line that is not of the format.
    """
    from ragaudit.client.state import read_bytes
    from ragaudit.ledger.errors import MalformedTrustPolicy
    from ragaudit.ledger.log.tlog_policy import TrustPolicy

    try:
        return TrustPolicy.parse(read_bytes(path))
    except MalformedTrustPolicy as error:
        raise MalformedTrustPolicy(
            error.what, where=f"{path}, {error.where}", expected=error.expected
        ) from error


def read_finding(
    path: Path, trust: "TrustPolicy", log_key: "VerifierKey | None"
) -> "QuorumFinding":
    """Return who cosigned the checkpoint of a receipt, or a checkpoint alone.

    Of a receipt the inclusion proof is checked too: the cosigned tree holds its record. A generated
    answer has two, of its charge and of itself: of one without the quorum if there is one.

    Args:
        path: of a receipt file, of its public part, or of a checkpoint note.
        trust: the reader's.
        log_key: of the log that is meant, where ``trust`` lists none.

    Raises:
        MalformedError: neither of the two kinds of file.
        UnavailableError: no inclusion proof yet.
        ReceiptRejected: a proof that is none, or one of another place.
        NoteRejected: an unknown log, or a line of a known key that does not verify.
        ProofRejected: the tree does not hold the record.
    """
    from ragaudit.client import offline
    from ragaudit.client.state import read_bytes
    from ragaudit.ledger.errors import ReceiptRejected
    from ragaudit.ledger.log.cosignatures import CosignerPolicy

    data = read_bytes(path)
    if not data.startswith(b"{"):
        return trust.judge(data, log_key)
    public = offline.public_half(offline.read_file(path), path)
    try:
        notes = [proof.checkpoint for proof in read_proofs(public, path)]
    except MalformedError as error:
        raise ReceiptRejected(error.what, where=str(path), expected=error.expected) from error
    findings = [trust.judge(note, log_key) for note in notes]
    # The log that signed is known now; by its key the leaf is looked up in the tree.
    key = log_key or next(
        log.key for log in trust.logs if log.key.name == findings[0].signed.checkpoint.origin
    )
    public.checkpoints(key, CosignerPolicy(trust.keys, 0))
    # Who stands behind a generated answer stands behind its charge, too.
    return next((finding for finding in findings if not finding.reached), findings[-1])


def read_proofs(public: "PublicPart", path: Path) -> "list[TlogProof]":
    """Return the inclusion proofs of a receipt, in the order of its entries; none is verified.

    Args:
        public: its public part.
        path: of its file, for errors.

    Raises:
        MalformedError: not a proof.
        UnavailableError: one is outstanding.
    """
    from ragaudit.ledger.log.tlog_proof import TlogProof

    texts = [text for text in public.proofs if text is not None]
    if len(texts) < len(public.proofs):
        raise UnavailableError(
            "the inclusion proof is outstanding",
            where=str(path),
            expected="`ragaudit receipt complete` first",
        )
    return [TlogProof.parse(text.encode()) for text in texts]


_STAMP_EXAMPLES = """Example:

  ragaudit receipt stamp answer.json --authority https://tsa.example --roots tsa-roots.pem

Exit code: 0 stamped; 1 the authority's answer does not verify; 3 it does not answer, or the
receipt has no proof yet."""

_STAMPED_EXAMPLES = """Example:

  ragaudit receipt stamped answer.json --token answer.json.tsr --roots tsa-roots.pem

Exit code: 0 the checkpoint existed by the time that is printed; 1 the stamp does not say so."""

Subject = Annotated[Path, typer.Argument(help="Receipt file, public part, or checkpoint.")]
Roots = Annotated[Path, typer.Option("--roots", help="PEM: the authorities that you trust.")]


@app.command("stamp", epilog=_STAMP_EXAMPLES)
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
    from ragaudit.client import offline
    from ragaudit.client.state import write_durably
    from ragaudit.ledger.log.timestamps import StampRequest, read_roots, verify_stamp

    target = output or file.with_name(file.name + ".tsr")
    with failing(as_json):
        checkpoint = read_checkpoint(file)
        trusted = offline.read_as(roots, read_roots)
        request = StampRequest.of(checkpoint)
        token = _ask(service_url(authority, "--authority"), request.body)
        found = verify_stamp(token, checkpoint, trusted, nonce=request.nonce)
        # Only after its check: a false one must not replace a good one.
        write_durably(target, token)
    _show(found, checkpoint, as_json)


@app.command("stamped", epilog=_STAMPED_EXAMPLES)
def stamped(
    file: Subject,
    token: Annotated[Path, typer.Option("--token", help="The stamp, as it was kept.")],
    roots: Roots,
    as_json: AsJson = False,
) -> None:
    """Check a kept stamp offline, and say by when the checkpoint existed."""
    from ragaudit.client import offline
    from ragaudit.ledger.log.timestamps import read_roots, verify_stamp

    with failing(as_json):
        checkpoint = read_checkpoint(file)
        trusted = offline.read_as(roots, read_roots)
        found = offline.read_as(token, lambda data: verify_stamp(data, checkpoint, trusted))
    _show(found, checkpoint, as_json)


def read_checkpoint(path: Path) -> "Checkpoint":
    """Return the checkpoint of a receipt's proof, or of a note; no signature is verified.

    Args:
        path: of a receipt file, of its public part, or of a checkpoint note.

    Raises:
        MalformedError: neither of the two kinds of file.
        UnavailableError: the receipt has no inclusion proof yet.
    """
    from ragaudit.client import offline
    from ragaudit.client.state import read_bytes
    from ragaudit.ledger.log.checkpoints import parse_checkpoint

    data = read_bytes(path)
    if data.startswith(b"{"):
        public = offline.public_half(offline.read_file(path), path)
        # Of a generated answer that of the answer: the log of then has its charge, too.
        data = read_proofs(public, path)[-1].checkpoint
    with of_file(path):
        return parse_checkpoint(data).checkpoint


def _ask(url: str, body: bytes) -> bytes:
    import httpx
    from ragaudit.http import HttpClient, LongAnswer
    from ragaudit.ledger.log.timestamps import MAX_TOKEN_BYTES, REQUEST_TYPE

    try:
        with HttpClient(timeout=_STAMPING_SECONDS, most=MAX_TOKEN_BYTES) as http:
            answer = http.request("POST", url, content=body, headers={"Content-Type": REQUEST_TYPE})
    except LongAnswer:
        raise MalformedError("answer too long", where=url) from None
    except httpx.HTTPError as error:
        raise UnavailableError(f"no answer: {type(error).__name__}", where=url) from None
    if not answer.is_success:
        raise UnavailableError(f"it answered {answer.status_code}", where=url)
    return answer.content


def _show(found: "Stamp", checkpoint: "Checkpoint", as_json: bool) -> None:
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
