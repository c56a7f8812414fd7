"""Scope tests as `ragaudit attack scope` prepares, runs and shows them."""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import typer
from ragaudit.encoding.console import Console
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.signing import PrivateKey
from ragaudit.lab.attacks.scope.exchange import Client, HttpClient, Secrets
from ragaudit.lab.attacks.scope.probes import Canary, read_canaries
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


def tested(path: Path, options: Options, plant: bool, most: int, wait: float) -> Report:
    """Run a test and return its report.

    Args:
        path: of the target.
        plant: whether to plant the canaries before and remove them afterwards.
        most: requests.
        wait: seconds for planted rows to show up.

    Raises:
        RefusedError: more requests would be needed.
        MalformedError, UnavailableError: as `prepared`.
    """
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


def write_signed(
    path: Path, found: Report, target: Path, subjects: dict[str, bytes], policy: bytes | None,
    key: PrivateKey,
) -> None:  # fmt: skip
    """Write a report as a signed in-toto statement.

    Args:
        subjects: files by name that it is about.
        policy: canonical, of the audited window that was tested; None if it was none.
    """
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
    write(path, envelope.decode(), "--signed")


def summary(found: Report) -> str:
    """Return a report in lines for people, without secrets."""
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


def write(path: Path, text: str, where: str) -> None:
    """Write a text.

    Args:
        where: the option that names the file.

    Raises:
        MalformedError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MalformedError(f"cannot write {path}: {error.strerror}", where=where) from None
