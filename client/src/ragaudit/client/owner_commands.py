"""`ragaudit owner`: check what an index holds of your documents."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer
from ragaudit.client.command_options import (
    AllowUnpinned,
    AsJson,
    PinnedKey,
    PinnedPolicy,
    Prover,
    SavedWindow,
)
from ragaudit.encoding.commands import ExitCode, NotJudged, failing, new_file
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.encoding.signing import PrivateKey, PublicKey

if TYPE_CHECKING:
    from ragaudit.client import owner_proofs
    from ragaudit.client.owner_audit import Found
    from ragaudit.client.owner_proofs import OwnerService, ShownCounts
    from ragaudit.client.window import Window
    from ragaudit.ledger.messages.documents import DocumentProof, RowProof
    from ragaudit.ledger.messages.entries import TenantOpening
    from ragaudit.ledger.messages.signed_results import OwnerResult

__all__ = ["app", "receipts"]

T = TypeVar("T")
_SECONDS: Final = 120.0

app = typer.Typer(
    no_args_is_help=True,
    help="What the owner of a tenant's documents sees of them in an index.\n\n"
    "Example: ragaudit owner key owner.key",
)
receipts = typer.Typer()
"""Of `ragaudit receipt`: what an owner shows to others."""

_ROW_EXAMPLES = """Example:

  ragaudit owner row faq-17 --prover https://rag.example --window-name 2026-11
  --verifier-key 3b6a... --out row.json

Exit code: 0 the row is proven; 1 the proof is false; 2 an input that is unusable; 3 the provider
does not answer; 4 it declines; 5 the version has no such document, the provider says: once the
window is closed, `owner erased` proves it."""

_PROVE_ERASED_EXAMPLES = """Example:

  ragaudit owner erased faq-17 --prover https://rag.example --window-name 2026-11
  --verifier-key 3b6a... --out erased.json

Exit code: 0 it is gone, or never was there; 1 it is still there, or the proof is false; 2 an
input that is unusable; 3 the provider does not answer; 4 it declines, as while the window is
open."""

_ERASED_EXAMPLES = """Examples:

  ragaudit receipt erased erased.json --policy policy.json

  ragaudit receipt erased faq-17 --prover https://rag.example --window-name 2026-11
  --verifier-key 3b6a...

Exit code: 0 it is gone, or never was there; 1 it is still there, or the proof is false; 2 an
input that is unusable; 3 the provider does not answer; 4 it declines, as while the window is
open."""


_AUDIT_EXAMPLES = """Examples:

  ragaudit owner audit --documents export.jsonl --sample 100 --prover https://rag.example
  --window-name 2026-11 --verifier-key 3b6a...

  ragaudit owner audit --documents export.jsonl --sample all --prover https://rag.example
  --window-name 2026-11 --policy policy.json --key owner.key --out result.json

Exit code: 0 nothing was found; 1 a document is missing or different, or a row is not the owner's,
or something shown is false; 2 an input that is unusable; 3 the provider does not answer; 4 it
declines; 5 nothing was found, and vectors could not be compared: give them in the export, or
install the window's embedder."""


AnyProver = Annotated[str, typer.Option("--prover", help="URL of the provider.")]
WindowName = Annotated[str, typer.Option("--window-name", help="Name of the window.")]
OwnerApiKey = Annotated[
    str,
    typer.Option(
        "--api-key", envvar="RAGAUDIT_OWNER_API_KEY",
        help="The owner's API key; better in the environment.",
    ),
]  # fmt: skip


@app.command("key", epilog="Example: ragaudit owner key owner.key")
def key(
    file: Annotated[Path, typer.Argument(help="Where the private key goes; must not exist.")],
    as_json: AsJson = False,
) -> None:
    """Make the key that signs the owner's findings, and print the public key.

    The provider puts the public key into its settings, window.owners.keys, before a window.
    """
    with failing(as_json):
        made = PrivateKey.generate()
        with new_file(file) as stream:
            stream.write(made.seed().hex().encode() + b"\n")
    public = made.public.raw.hex()
    typer.echo(json.dumps({"file": str(file), "public": public}) if as_json else public)


@app.command("row", epilog=_ROW_EXAMPLES)
def row(
    name: Annotated[str, typer.Argument(metavar="ID", help="Of the document.")],
    prover: AnyProver,
    window_name: WindowName,
    api_key: OwnerApiKey,
    version: Annotated[
        int | None,
        typer.Option("--version", min=1, help="Version of the index; the one in force if unset."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File for the proof.")] = None,
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    as_json: AsJson = False,
) -> None:
    """Prove what the index holds of one document."""
    with failing(as_json):
        target = _window(prover, window_name, policy, verifier_key, allow_unpinned)
        proof = _asked(prover, api_key, target, lambda service: service.row(name, version))
        if proof is None:
            expected = "once the window is closed, `ragaudit owner erased` proves it"
            raise NotJudged("not in the index, the provider says", where=name, expected=expected)
        _keep(proof, out)
    shown = proof.row
    if as_json:
        found = {
            "id": shown.id, "position": shown.position, "version": proof.index.version,
            "tenant": proof.index.tenant, "null": shown.null, "marked": shown.marked,
            "content": shown.content, "attributes": shown.attributes, "columns": shown.columns,
        }  # fmt: skip
        typer.echo(json.dumps(found))
        return
    place = f"row {shown.position} of version {proof.index.version} of the index of "
    held = "is a null row there: deleted" if shown.null else "is there, as proven"
    typer.echo(f"{shown.id}: {place}{proof.index.tenant}; it {held}.")
    if not shown.null and shown.content is None:
        typer.echo("Its text in the store is another one by now; the proof has its digest.")


@app.command("erased", epilog=_PROVE_ERASED_EXAMPLES)
def erased(
    name: Annotated[str, typer.Argument(metavar="ID", help="Of the document.")],
    prover: AnyProver,
    window_name: WindowName,
    api_key: OwnerApiKey,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File for the proof.")] = None,
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    as_json: AsJson = False,
) -> None:
    """Prove whether a document is gone from the index of a closed window, and since when.

    The proof tells whoever holds it the window's document secret: you decide who gets one.
    """
    with failing(as_json):
        target = _window(prover, window_name, policy, verifier_key, allow_unpinned)
        proof, found = _document(prover, api_key, target, name)
        _keep(proof, out)
    _say(found, as_json)


@receipts.command("erased", epilog=_ERASED_EXAMPLES)
def say_erased(
    what: Annotated[str, typer.Argument(metavar="FILE|ID", help="Document proof, or an id.")],
    window: SavedWindow = None,
    prover: Prover = None,
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    window_name: Annotated[
        str | None, typer.Option("--window-name", help="Name of the window, with an id.")
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            "--api-key", envvar="RAGAUDIT_OWNER_API_KEY", help="The owner's API key, with an id."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say in one sentence whether a document is gone from its index, and since when.

    Of a file the policy alone is enough, offline; with the window the time is exact.
    """
    from ragaudit.client import owner_proofs
    from ragaudit.client.offline import Source
    from ragaudit.ledger.messages.documents import DocumentProof

    with failing(as_json):
        if Path(what).exists():
            proof = owner_proofs.read(Path(what))
            if not isinstance(proof, DocumentProof):
                raise MalformedError("not a document proof", where=what, expected="one of `erased`")
            source = Source(window, prover, policy, verifier_key, allow_unpinned)
            terms, shown = owner_proofs.opened(source, proof)
            _, place = owner_proofs.check(proof, terms, owner_proofs.Given())
            found = owner_proofs.described(proof, terms, place, shown)
        else:
            if prover is None or window_name is None or api_key is None:
                expected = "--prover, --window-name and --api-key, or the file of a proof"
                raise InvalidArgumentError("no such file", where=what, expected=expected)
            target = _window(prover, window_name, policy, verifier_key, allow_unpinned)
            _, found = _document(prover, api_key, target, what)
    _say(found, as_json)


@app.command(
    "counts",
    epilog="Example: ragaudit owner counts --prover https://rag.example --window-name 2026-11 "
    "--verifier-key 3b6a...",
)
def counts(
    prover: AnyProver,
    window_name: WindowName,
    api_key: OwnerApiKey,
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    as_json: AsJson = False,
) -> None:
    """Show how many rows each version of the index has, and how many of them are null rows.

    The rows are compared with the log; how many are null rows is the provider's word, which
    `owner audit --sample all` checks.
    """
    from ragaudit.encoding.console import Console
    from rich.table import Table

    with failing(as_json):
        target = _window(prover, window_name, policy, verifier_key, allow_unpinned)
        shown = _asked(prover, api_key, target, lambda service: service.counts())
        _check_counts(shown, target)
    if as_json:
        typer.echo(json.dumps(shown.to_json()))
        return
    table = Table("version", "rows", "null rows", "")
    for each in shown.versions:
        numbers = map(str, (each.version, each.rows, each.null_rows))
        table.add_row(*numbers, "in force" * (each.version == shown.in_force))
    Console().print(table)


@app.command("audit", epilog=_AUDIT_EXAMPLES)
def audit(
    documents: Annotated[
        Path,
        typer.Option(
            "--documents",
            help="JSONL of id, text, metadata and vector, as exported from the store; or a folder.",
        ),
    ],
    sample: Annotated[
        str,
        typer.Option("--sample", metavar="N|all", help="How many documents, and how many rows."),
    ],
    prover: AnyProver,
    window_name: WindowName,
    api_key: OwnerApiKey,
    version: Annotated[
        int | None,
        typer.Option("--version", min=1, help="Version of the index; the one in force if unset."),
    ] = None,
    signing_key: Annotated[
        Path | None, typer.Option("--key", help="Sign the result: made by `ragaudit owner key`.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the signed result, with --key.")
    ] = None,
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    as_json: AsJson = False,
) -> None:
    """Compare your documents with the index, in both directions, and sign what was found.

    Each document must be in the index as given, with its metadata and vector; and the rows of the
    index must be your documents and no others. A vector that the export lacks is compared if the
    window's embedder is installed. Passages, into which a service cuts long texts, are documents.
    """
    from ragaudit.client import offline
    from ragaudit.client.owner_audit import OwnerAudit, check_owner_key, read_documents
    from ragaudit.client.session import system_clock
    from ragaudit.client.state import read_key

    with failing(as_json):
        count = _count(sample)
        if (signing_key is None) != (out is None):
            raise InvalidArgumentError(
                "a result is signed and written", where="--key", expected="--key and --out, or none"
            )
        signer = None if signing_key is None else read_key(signing_key)
        owned = read_documents(documents)
        target = _window(prover, window_name, policy, verifier_key, allow_unpinned)

        async def compared(service: "OwnerService") -> "tuple[Found, OwnerResult]":
            shown = await service.counts()
            if signer is not None:
                check_owner_key(target.view.policy, shown.tenant, signer.public)
            index = _index(target, shown, version)
            work = OwnerAudit(service, owned, index, offline.embed_of(target))
            found = await (work.all() if count is None else work.sample(count))
            return found, work.result(shown.tenant, system_clock())

        found, result = _asked(prover, api_key, target, compared)
        if out is not None and signer is not None:
            with new_file(out) as file:
                file.write(result.issue(signer))
    _report(found, result, as_json)


def _count(sample: str) -> int | None:
    """Return how many are sampled; None for all."""
    if sample == "all":
        return None
    if not (sample.isascii() and sample.isdigit() and 0 < len(sample) < 10 and int(sample) > 0):
        raise InvalidArgumentError(repr(sample), where="--sample", expected="a number, or all")
    return int(sample)


def _index(window: "Window", shown: "ShownCounts", version: int | None) -> "TenantOpening":
    """Return the version that is compared, as the log of the window commits to it."""
    from ragaudit.client.errors import AnswerRejected

    versions = {
        each.index.version: each.index
        for each in window.view.schedule.versions
        if each.index.tenant == shown.tenant
    }
    if not versions:
        raise AnswerRejected("a tenant that the window has not", where="tenant")
    number = shown.in_force if version is None else version
    if number not in versions:
        expected = f"1..{max(versions)}, as the window's log shows"
        raise InvalidArgumentError(f"no version {number}", where="--version", expected=expected)
    return versions[number]


def _window(
    prover: str,
    name: str,
    policy: Path | None,
    verifier_key: PublicKey | None,
    allow_unpinned: bool,
) -> "Window":
    from ragaudit.client.offline import Source

    return Source(None, prover, policy, verifier_key, allow_unpinned).load(name)


def _asked(
    url: str, api_key: str, window: "Window", work: "Callable[[OwnerService], Awaitable[T]]"
) -> T:
    """Return what one piece of work with the owner's calls returns."""
    from ragaudit.client.blocking import call
    from ragaudit.client.owner_proofs import OwnerService

    return call(url, lambda service: work(OwnerService(service, window)), api_key, _SECONDS)


def _document(
    url: str, api_key: str, window: "Window", name: str
) -> "tuple[DocumentProof, owner_proofs.Erased]":
    from ragaudit.client import owner_proofs

    proof, place = _asked(url, api_key, window, lambda service: service.document(name))
    return proof, owner_proofs.described(proof, window.view.policy, place, window)


def _say(found: "owner_proofs.Erased", as_json: bool) -> None:
    """Print what was found; exit code 1 for a document that is there."""
    if as_json:
        document = {
            "gone": found.gone, "since": found.since, "version": found.version,
            "sentence": found.sentence,
        }  # fmt: skip
        typer.echo(json.dumps(document))
    else:
        typer.echo(found.sentence)
    if not found.gone:
        raise typer.Exit(int(ExitCode.FALSE))


def _keep(proof: "DocumentProof | RowProof", out: Path | None) -> None:
    if out is not None:
        with new_file(out) as file:
            file.write(proof.encode())


def _check_counts(shown: "ShownCounts", window: "Window") -> None:
    """Check the rows of each version with the log of the window."""
    from ragaudit.client.errors import AnswerRejected

    rows = {each.version: each.rows for each in shown.versions}
    # One that is not cosigned yet is not in the window as it is shown.
    for logged in (each.index for each in window.view.schedule.versions):
        said = rows.get(logged.version, logged.rows)
        if logged.tenant == shown.tenant and said != logged.rows:
            raise AnswerRejected(
                f"{said} rows", where=f"version {logged.version}", expected=f"{logged.rows}"
            )


def _report(found: "Found", result: "OwnerResult", as_json: bool) -> None:
    owned, committed = result.owned, result.committed
    if as_json:
        shown = {
            "tenant": result.tenant, "version": result.version, "result": result.result,
            "owned": owned.to_json(), "committed": committed.to_json(),
            "without_vector": found.without_vector, "findings": found.told,
        }  # fmt: skip
        typer.echo(json.dumps(shown))
    else:
        for sentence in found.told:
            typer.echo(sentence)
        typer.echo(
            f"{owned.compared} of {owned.documents} documents compared with version "
            f"{result.version}: {owned.missing} missing, {owned.different} different."
        )
        typer.echo(
            f"{committed.compared} of {committed.rows} rows compared: {committed.unknown} are none "
            f"of your documents, {committed.gone} are null rows."
        )
        if found.without_vector:
            typer.echo(
                f"The vectors of {found.without_vector} documents were not compared: they are not "
                "in the export, and the window's embedder is not at hand."
            )
    if result.result == "FAILED":
        raise typer.Exit(int(ExitCode.FALSE))
    if found.without_vector:
        raise typer.Exit(int(ExitCode.INCOMPLETE))
