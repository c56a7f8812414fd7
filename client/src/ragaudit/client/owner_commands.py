"""`ragaudit owner`: what a tenant's owner sees of its documents in an index."""

import json
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.client import erased_command, offline
from ragaudit.client.blocking import run
from ragaudit.client.command_window import (
    AllowUnpinned,
    AsJson,
    PinnedKey,
    PinnedPolicy,
    load_named,
    pins_of,
)
from ragaudit.client.errors import AnswerRejected
from ragaudit.client.facts import Facts
from ragaudit.client.options import system_clock
from ragaudit.client.owned_documents import read_documents
from ragaudit.client.owner_audit import Found, OwnerAudit, check_owner_key
from ragaudit.client.owner_options import AnyProver, OwnerApiKey, WindowName
from ragaudit.client.owner_service import OwnerService, ShownCounts
from ragaudit.client.window import Window
from ragaudit.encoding.commands import ExitCode, NotJudged, failing, new_file
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.ledger.messages.owner_result import OwnerResult
from ragaudit.ledger.messages.records import TenantOpening
from ragaudit.ledger.messages.row_proofs import RowProof
from rich.table import Table

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="What the owner of a tenant's documents sees of them in an index.\n\n"
    "Example: ragaudit owner key owner.key",
)

_ROW_EXAMPLES = """Example:

  ragaudit owner row faq-17 --prover https://rag.example --window-name 2026-11
  --verifier-key 3b6a... --out row.json

Exit status: 0 the row is proven; 1 the proof is false; 2 an input that is unusable; 3 the provider
does not answer; 4 it declines; 5 the version has no such document, the provider says: once the
window is closed, `owner erased` proves it."""

_ERASED_EXAMPLES = """Example:

  ragaudit owner erased faq-17 --prover https://rag.example --window-name 2026-11
  --verifier-key 3b6a... --out erased.json

Exit status: 0 it is gone, or never was there; 1 it is still there, or the proof is false; 2 an
input that is unusable; 3 the provider does not answer; 4 it declines, as while the window is
open."""

_AUDIT_EXAMPLES = """Examples:

  ragaudit owner audit --documents export.jsonl --sample 100 --prover https://rag.example
  --window-name 2026-11 --verifier-key 3b6a...

  ragaudit owner audit --documents export.jsonl --sample all --prover https://rag.example
  --window-name 2026-11 --policy policy.json --key owner.key --out result.json

Exit status: 0 nothing was found; 1 a document is missing or different, or a row is not the owner's,
or something shown is false; 2 an input that is unusable; 3 the provider does not answer; 4 it
declines; 5 nothing was found, and vectors could not be compared: give them in the export, or
install the window's embedder."""


@app.command("key", epilog="Example: ragaudit owner key owner.key")
def key(
    file: Annotated[Path, typer.Argument(help="Where the private half goes; must not exist.")],
    as_json: AsJson = False,
) -> None:
    """Make the key with which the owner signs what it finds, and print its public half.

    The provider puts the public half into its settings, window.owners.keys, before a window.
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
        int | None, typer.Option("--version", min=1, help="Of the index; else the one in force.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File for the proof.")] = None,
    policy: PinnedPolicy = None,
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    as_json: AsJson = False,
) -> None:
    """Prove what the index holds of one document."""
    with failing(as_json):
        pins = pins_of(policy, verifier_key, allow_unpinned)
        target = load_named(window_name, None, prover, pins)
        proof = run(_row(prover, api_key, target, name, version))
        if proof is None:
            expected = "once the window is closed, `ragaudit owner erased` proves it"
            raise NotJudged("not in the index, the provider says", where=name, expected=expected)
        if out is not None:
            with new_file(out) as file:
                file.write(proof.encode())
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


@app.command("erased", epilog=_ERASED_EXAMPLES)
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
        pins = pins_of(policy, verifier_key, allow_unpinned)
        target = load_named(window_name, None, prover, pins)
        proof, found = run(erased_command.ask(prover, api_key, target, name))
        erased_command.keep(proof, out)
    erased_command.say(found, as_json)


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
    with failing(as_json):
        pins = pins_of(policy, verifier_key, allow_unpinned)
        target = load_named(window_name, None, prover, pins)
        shown = run(_counts(prover, api_key, target))
    if as_json:
        typer.echo(json.dumps(shown.to_json()))
        return
    table = Table("version", "rows", "null rows", "")
    for number, (rows, null, _) in enumerate(shown.versions, start=1):
        table.add_row(*map(str, (number, rows, null)), "in force" * (number == shown.in_force))
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
    sample: Annotated[str, typer.Option("--sample", metavar="N|all", help="How many of each.")],
    prover: AnyProver,
    window_name: WindowName,
    api_key: OwnerApiKey,
    version: Annotated[
        int | None, typer.Option("--version", min=1, help="Of the index; else the one in force.")
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
    with failing(as_json):
        count = _count(sample)
        if (signing_key is None) != (out is None):
            raise InvalidArgumentError(
                "a result is signed and written", where="--key", expected="--key and --out, or none"
            )
        signer = None if signing_key is None else offline.read_key(signing_key)
        owned = read_documents(documents)
        pins = pins_of(policy, verifier_key, allow_unpinned)
        target = load_named(window_name, None, prover, pins)

        async def compared() -> tuple[Found, OwnerResult]:
            async with OwnerService(prover, api_key, target) as service:
                shown = await service.counts()
                if signer is not None:
                    check_owner_key(target.view.policy, shown.tenant, signer.public)
                index = _index(target, shown, version)
                embed = Facts(embedder=offline.load_embedder(target)).embed(target)
                work = OwnerAudit(service, owned, index, embed)
                found = await (work.all() if count is None else work.sample(count))
                return found, work.result(shown.tenant, system_clock())

        found, result = run(compared())
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


def _index(window: Window, shown: ShownCounts, version: int | None) -> TenantOpening:
    """Return the version that is compared, as the log of the window commits to it."""
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


async def _row(
    url: str, api_key: str, window: Window, name: str, version: int | None
) -> RowProof | None:
    async with OwnerService(url, api_key, window) as service:
        return await service.row(name, version)


async def _counts(url: str, api_key: str, window: Window) -> ShownCounts:
    async with OwnerService(url, api_key, window) as service:
        shown = await service.counts()
    for number, (rows, _, _) in enumerate(shown.versions, start=1):
        # One that is not cosigned yet is not in the window as it is shown.
        for each in window.view.schedule.versions:
            place = (each.index.tenant, each.index.version)
            if place == (shown.tenant, number) and each.index.rows != rows:
                raise AnswerRejected(
                    f"{rows} rows", where=f"version {number}", expected=f"{each.index.rows}"
                )
    return shown


def _report(found: Found, result: OwnerResult, as_json: bool) -> None:
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
