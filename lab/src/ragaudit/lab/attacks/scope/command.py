"""``ragaudit attack scope`` and ``ragaudit attack canaries``."""

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer
from ragaudit.encoding.commands import failing
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.scope.exchange import Client, HttpClient, Secrets
from ragaudit.lab.attacks.scope.judging import SCHEMA
from ragaudit.lab.attacks.scope.probes import Canary, draw_canaries, read_canaries, write_canaries
from ragaudit.lab.attacks.scope.report import Report
from ragaudit.lab.attacks.scope.running import Options, Patience, Plan, run
from ragaudit.lab.attacks.scope.stores.chroma import Chroma
from ragaudit.lab.attacks.scope.stores.dify import Dify
from ragaudit.lab.attacks.scope.stores.mcp import Mcp
from ragaudit.lab.attacks.scope.stores.openai import OpenAi
from ragaudit.lab.attacks.scope.stores.pgvector import Pgvector, SqlClient
from ragaudit.lab.attacks.scope.stores.prover import Prover
from ragaudit.lab.attacks.scope.stores.qdrant import Qdrant
from ragaudit.lab.attacks.scope.stores.store import Scene, Store, StoreKind, Target, load
from ragaudit.lab.attacks.signing import policy_bytes, signer_of
from ragaudit.ledger.messages.items import POLICY
from ragaudit.ledger.messages.signed_results import ScopeResult
from rich.progress import Progress

STORES: Final[dict[StoreKind, type[Store]]] = {
    "chroma": Chroma,
    "qdrant": Qdrant,
    "openai": OpenAi,
    "pgvector": Pgvector,
    "prover": Prover,
    "mcp": Mcp,
    "dify": Dify,
}


@contextmanager
def prepared(target: Target, options: Options, *, plant: bool) -> Iterator[tuple[Plan, Secrets]]:
    """Give the plan of a run, and what must not be printed.

    Args:
        target: with absolute paths.
        plant: whether to plant the canaries before and remove them afterwards.

    Raises:
        MalformedError: keys or canaries are missing or unfit; ``where`` names the field.
        UnavailableError: the store does not answer.
    """
    kind = STORES[target.store]
    canaries = _canaries(target, kind)
    if plant and not kind.plants:
        raise MalformedError(
            f"nothing can be planted over this interface ({target.store})",
            where="--plant", expected="your own ingestion of the file of canaries",
        )  # fmt: skip
    if options.writes and kind.writes is Store.writes:
        raise MalformedError(
            f"nothing can be written over this interface ({target.store}): {kind.writeless}",
            where="--writes", expected="the test of the store behind it",
        )  # fmt: skip
    if options.writes and not (plant or kind.restores):
        raise MalformedError(
            "canaries that are overwritten must be planted again",
            where="--writes", expected="with --plant",
        )  # fmt: skip
    keys = target.keys()
    secrets = Secrets(keys)
    client = _client(target, kind, secrets)
    try:
        scene = Scene(
            target, canaries, client, np.random.default_rng([options.seed, 0]), frozenset(keys)
        )
        store = kind(scene)
        store.open()
        yield Plan(store, options, plant=plant), secrets
    finally:
        client.close()


def _client(target: Target, kind: type[Store], secrets: Secrets) -> Client:
    if kind is Pgvector:
        return SqlClient(secrets, target.timeout_seconds)
    header = kind.header if target.key_header is None else target.key_header.lower()
    prefix = kind.prefix if target.key_prefix is None else target.key_prefix
    return HttpClient(target.url, header, prefix, secrets, target.timeout_seconds)


def _canaries(target: Target, kind: type[Store]) -> dict[str, list[Canary]]:
    found: dict[str, list[Canary]] = {}
    for canary in read_canaries(target.canaries, "canaries"):
        if canary.tenant not in target.tenants:
            raise MalformedError(
                f"of {canary.tenant}", where="canaries", expected="tenants of the target alone"
            )
        length = None if canary.vector is None else len(canary.vector)
        if kind.vectors and length != target.dimension:
            raise MalformedError(
                f"canaries of dimension {length}",
                where="dimension",
                expected="that of `ragaudit attack canaries --dimension`",
            )
        found.setdefault(canary.tenant, []).append(canary)
    return found


SCOPE_EXAMPLE = """Examples:

  ragaudit attack scope scope.yaml --plant --page leaks.html --report leaks.json

  ragaudit attack scope scope.yaml --plant --writes --pause 0.05

  ragaudit attack scope scope.yaml --only get-ids --seed 7

With --plant, rows that do not show up at once are waited for: a prover in front of a store takes
them up with its next version.

Exit code: 0 nothing found, 1 a leak, 2 bad input, 3 no answer, 4 a key or the budget is refused,
5 nothing found and not everything judged, or a key does not find its own canaries."""

CANARIES_EXAMPLE = """Example:

  ragaudit attack canaries canaries.jsonl --tenants acme,globex --dimension 384"""


class Page(StrEnum):
    """How a page for people ends."""

    HTML = ".html"
    MARKDOWN = ".md"


def canaries(
    output: Annotated[Path, typer.Argument(help="A new file of JSON lines.")],
    tenants: Annotated[
        str, typer.Option(help="Names of the tenants, separated by commas: acme,globex")
    ],
    dimension: Annotated[
        int | None,
        typer.Option(help="Entries of a vector; none if the system embeds texts: --dimension 384"),
    ] = None,
) -> None:
    """Draw canary documents. Plant those with "planted": true with `scope --plant` or by your own
    ingestion, and none of the others."""
    with failing():
        names = [name for name in tenants.split(",") if name]
        if not names or len(set(names)) != len(names):
            raise MalformedError(
                "no names, or one twice", where="--tenants", expected="acme,globex"
            )
        write_canaries(output, draw_canaries(names, dimension))


def scope(
    target: Annotated[
        Path | None, typer.Argument(help="A YAML file (docs/leaks.md): scope.yaml")
    ] = None,
    plant: Annotated[
        bool, typer.Option("--plant", help="Plant the canaries before, and remove them after.")
    ] = False,
    writes: Annotated[
        bool,
        typer.Option("--writes", help="Try writes too, on canaries only, which are then restored."),
    ] = False,
    page: Annotated[
        Path | None, typer.Option(help="A page for people: leaks.html or leaks.md")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="JSON for CI: leaks.json")] = None,
    signed: Annotated[
        Path | None,
        typer.Option(help="The result as a signed in-toto statement: leaks.dsse.json"),
    ] = None,
    sign_key: Annotated[
        Path | None, typer.Option(help="With --signed: a key file (`ragaudit key`).")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            help="With --signed: of the audited window that is tested, canonical JSON: its verdict "
            "may refer to the result then (`ragaudit verifier test-results attach`)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order of requests: --seed 7")] = 0,
    rounds: Annotated[
        int, typer.Option(min=2, max=1000, help="Rounds of existence and timing tests: --rounds 20")
    ] = 5,
    error: Annotated[
        float,
        typer.Option(help="Probability that any of those tests raises a false alarm: --error 0.01"),
    ] = 0.01,
    only: Annotated[
        list[str] | None, typer.Option(help="Run this probe only (repeatable): --only get-ids")
    ] = None,
    pause: Annotated[
        float, typer.Option(min=0, help="Seconds before each request: --pause 0.1")
    ] = 0.0,
    wait: Annotated[
        float,
        typer.Option(min=0, help="With --plant: seconds for planted rows to show up: --wait 900"),
    ] = 600.0,
    max_requests: Annotated[
        int, typer.Option(min=1, help="Refuse a longer run: --max-requests 20000")
    ] = 20_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON report.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the report's JSON schema, and stop.")
    ] = False,
) -> None:
    """Try to see one tenant's documents with another's key: does this store leak?"""
    if schema:
        typer.echo(json.dumps(SCHEMA, indent=2))
        return
    with failing(as_json):
        if target is None:
            raise MalformedError("missing", where="TARGET", expected="a YAML file, docs/leaks.md")
        if page is not None and page.suffix not in tuple(Page):
            raise MalformedError(page.name, where="--page", expected="a name in .html or .md")
        if not 0 < error <= 0.5:
            raise MalformedError(str(error), where="--error", expected="above 0, 0.5 at most")
        signing = None
        if signed is not None:
            if sign_key is None or report is None:
                raise MalformedError(
                    "nothing to sign, or to sign with", where="--signed",
                    expected="with --report and --sign-key",
                )  # fmt: skip
            signing = signer_of(sign_key), None if policy is None else policy_bytes(policy)
        options = Options(seed, rounds, error, pause, frozenset(only or ()), writes)
        found = _run(target, options, plant, max_requests, wait)
        document = json.dumps(found.to_json(), indent=2, ensure_ascii=False)
        if report is not None:
            _write(report, document + "\n", "--report")
        if signed is not None and signing is not None and report is not None:
            key, about = signing
            subjects = {report.name: (document + "\n").encode()}
            _write_signed(signed, found, target, subjects, about, key)
        if page is not None:
            html = page.suffix == Page.HTML
            _write(page, found.to_html() if html else found.to_markdown(), "--page")
        typer.echo(document if as_json else _summary(found))
    raise typer.Exit(found.exit_code)


def _run(path: Path, options: Options, plant: bool, most: int, wait: float) -> Report:
    target = load(path)
    with prepared(target, options, plant=plant) as (plan, secrets):
        sys.stderr.write(
            f"{plan.requests} requests at most for {len(plan.pairs)} pairs of tenants, "
            f"seed {options.seed}\n"
        )
        if plan.requests > most:
            raise RefusedError(
                f"{plan.requests} requests", where="--max-requests", expected=f"at most {most}"
            )
        console = Console(stderr=True)
        with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
            task = progress.add_task("requests", total=plan.requests)
            patience = Patience(wait, lambda text: typer.echo(text, err=True))
            found = run(plan, lambda count: progress.advance(task, count), patience)
        kind = type(plan.store)
        return replace(
            found,
            secrets=secrets,
            header=target.key_header or kind.header,
            prefix=kind.prefix if target.key_prefix is None else target.key_prefix,
        )


def _write_signed(
    path: Path, found: Report, target: Path, subjects: dict[str, bytes], policy: bytes | None,
    key: PrivateKey,
) -> None:  # fmt: skip
    if policy is not None:
        subjects = {**subjects, POLICY: policy}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in subjects.items()}
    detail = {
        "store": found.store,
        "findings": str(len(found.findings)),
        "requests": str(found.requests),
        "seed": str(found.seed),
        "error": f"{found.error:g}",
    }
    tested = hashlib.sha256(target.read_bytes()).hexdigest()
    envelope = ScopeResult(digests, tested, found.result, detail).issue(key)
    _write(path, envelope.decode(), "--signed")


def _summary(found: Report) -> str:
    lines = [
        f"{one.severity:<8} {one.probe:<28} {one.title}: {one.evidence[:120]}"
        for one in found.findings
    ]
    lines += [
        f"not judged: {one.probe} ({one.attacker} against {one.victim}): {one.unjudged}"
        for one in found.tried if one.result == "NOT JUDGED"
    ]  # fmt: skip
    lines.append(f"{found.result} after {found.requests} requests")
    return found.secrets.redacted("\n".join(lines))


def _write(path: Path, text: str, where: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MalformedError(f"cannot write {path}: {error.strerror}", where=where) from None
