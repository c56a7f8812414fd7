"""``ragaudit verifier``: set the service up, run it, audit a window, re-check a bundle.

What a command alone needs is imported in it: the accounting libraries take seconds to load.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragaudit.encoding.commands import ExitCode, failing, loading, of_file, verdict_code
from ragaudit.encoding.errors import MalformedError, RefusedError
from ragaudit.encoding.options import digest, public_key
from ragaudit.encoding.printable import one_line
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.verifier.command import arbiter, evidence
from ragaudit.verifier.command.evidence import service
from ragaudit.verifier.command.options import (
    DEFAULT_SETTINGS,
    SETTINGS_FILE,
    AsJson,
    SettingsPath,
    VerdictKeyIfAny,
)

if TYPE_CHECKING:
    from ragaudit.ledger.messages.verdict import Verdict
    from ragaudit.verifier.recheck import Recheck
    from ragaudit.verifier.service.database import Database
    from ragaudit.verifier.settings import EngineName, Settings


def prove_count(
    bundle: Annotated[Path, typer.Argument(help="The evidence bundle, both parts.")],
    pseudonym: Annotated[
        bytes, typer.Argument(parser=digest, metavar="HEX", help="Pseudonym of the account.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the proof to.")],
) -> None:
    """Prove which records an account has in a window, or that it was not registered.

    Whoever is given the file checks it offline: ragaudit receipt verify-count. It counts with a
    verdict in which check 22 passed. Exit code: 1 the log has another index; 4 it has none, or the
    bundle is not whole.
    """
    from ragaudit.verifier.accounts import prove_account
    from ragaudit.verifier.bundle import open_bundle
    from ragaudit.verifier.engines import fastest_engine

    with failing():
        if not bundle.is_file():
            raise MalformedError("no such file", where=str(bundle))
        with open_bundle(bundle) as opened:
            proof = prove_account(opened.evidence, pseudonym, engine=fastest_engine())
        out.write_bytes(proof.encode())
        counted = "not registered" if proof.records is None else f"{len(proof.records)} records"
        typer.echo(f"{pseudonym.hex()}: {counted}")


class Format(StrEnum):
    """What a verdict can be written as (docs/spec/10-verdict.md §10.7)."""

    SVR = "svr"
    OSCAL = "oscal"
    JSONL = "jsonl"


def export(
    verdict: Annotated[Path, typer.Argument(help="The signed verdict: verdict.json of a bundle.")],
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="svr: in-toto simple verification result; oscal: assessment results; "
            "jsonl: a finding a line.",
        ),
    ],
    verdict_key: VerdictKeyIfAny = None,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings", "-s", help="Settings of the verifier, instead of --verdict-key."
        ),
    ] = None,
    sign: Annotated[
        bool, typer.Option("--sign", help="svr: sign it, with the verdict key of --settings.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; standard output if none.")
    ] = None,
) -> None:
    """Write a verdict as a document for other tools; it says no more than the verdict does.

    The signature is verified first. The same verdict gives the same bytes. Only an svr can be
    signed; the other two, and an svr without --sign, are not.
    """
    with failing():
        if sign and (form is not Format.SVR or settings is None):
            raise MalformedError(
                "nothing to sign, or to sign with", where="--sign", expected="svr, and --settings"
            )
        key = None if settings is None else _own_key(settings)
        found = _verified(verdict, _pinned(verdict_key, key))
        data = _document(found, form, key if sign else None)
        if output is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            _write(output, data)


def _own_key(settings: Path) -> PrivateKey:
    from ragaudit.verifier import keys as key_files
    from ragaudit.verifier import settings as settings_files

    own = settings_files.load(settings)
    return key_files.load(own.secrets, own.name, own.arbiter).verdict


def _verified(path: Path, public: PublicKey) -> "Verdict":
    from ragaudit.ledger.messages.verdict import Verdict

    try:
        data = path.read_bytes()
    except OSError as error:
        raise MalformedError("cannot be read", where=str(path)) from error
    with of_file(path):
        return Verdict.verify(data, public)


def _pinned(given: PublicKey | None, own: PrivateKey | None) -> PublicKey:
    """The key that must have signed: of the option, or else of the settings."""
    if given is not None:
        return given
    if own is not None:
        return own.public
    raise MalformedError(
        "nothing says whose verdict it must be", expected="--verdict-key or --settings"
    )


def _document(verdict: "Verdict", form: Format, key: PrivateKey | None) -> bytes:
    from ragaudit.ledger.messages.verdict_exports import AuditFinding, VerificationResult

    match form:
        case Format.SVR:
            result = VerificationResult.of(verdict)
            return (result.encode() if key is None else result.issue(key)) + b"\n"
        case Format.OSCAL:
            # The report's words load the accounting libraries, which take seconds.
            from ragaudit.verifier.report.oscal import assessment_results

            return assessment_results(verdict) + b"\n"
        case Format.JSONL:
            return b"".join(finding.encode() for finding in AuditFinding.of(verdict))


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise MalformedError("cannot be written", where=str(path)) from error


_MIGRATE = "Example: ragaudit verifier migrate --settings verifier.yaml"


def migrate(settings: SettingsPath = DEFAULT_SETTINGS, as_json: AsJson = False) -> None:
    """Bring the database of an earlier release to this one, or make its tables if it has none.

    Stop the service and back the database up first: there is no way back but the backup. Nothing
    is done by halves; a database of this release stays as it is. The queue of jobs, if the settings
    ask for one, is made anew.
    """
    from ragaudit.serving.jobs.opening import make_queue
    from ragaudit.verifier import settings as settings_files
    from ragaudit.verifier.service.database import migrate_tables
    from ragaudit.verifier.work import JOBS

    with failing():
        loaded = settings_files.load(settings)
        settings_files.make_data_folder(loaded)
        with _not_served(loaded):
            done = migrate_tables(loaded.database_url)
            make_queue(loaded.jobs, JOBS, loaded.database_url)
        before = done.before or "no tables"
        if as_json:
            typer.echo(json.dumps({"before": before, "after": done.after}))
        else:
            typer.echo(f"before: {before}\nafter: {done.after}")


@contextmanager
def _not_served(settings: "Settings") -> Iterator[None]:
    """Hold the fence of the service meanwhile, so that it neither runs nor starts."""
    # Never made here: a database that a fence has guarded is refused where the file is missing.
    if not settings.fence_path.exists():
        yield
        return
    with closing(settings.fence_place.open()):
        yield


def print_schema() -> None:
    """Print the JSON schema of the settings file."""
    from ragaudit.verifier.settings import Settings

    typer.echo(Settings.schema_text())


_WORKER = "Example: ragaudit verifier worker --settings verifier.yaml --threads 2"


def worker(
    settings: SettingsPath = DEFAULT_SETTINGS,
    threads: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Threads; one for each core if unset.")
    ] = None,
    status: Annotated[
        bool, typer.Option("--status", help="Say how many workers and jobs there are, and end.")
    ] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    as_json: AsJson = False,
) -> None:
    """Check arguments for the service, on this machine, until SIGTERM; needs PostgreSQL.

    On SIGTERM or SIGINT it ends after the job at hand. The service believes its results, so run
    workers on machines of this verifier only. They need none of its keys.

    Exit code: 0 it was told to stop, or workers are alive; 1 --status finds none alive; others as
    every command.
    """
    from ragaudit.ledger.log.database import await_server
    from ragaudit.serving import log_lines
    from ragaudit.serving.clock import system_clock
    from ragaudit.serving.jobs.opening import open_queue, work
    from ragaudit.serving.server import check_log_level
    from ragaudit.verifier import settings as settings_files
    from ragaudit.verifier.service.database import Database
    from ragaudit.verifier.work import JOBS

    with failing(as_json):
        read = settings_files.load(settings)
        if status:
            with open_queue(read.jobs, JOBS, read.database_url) as queue:
                found = queue.state()
            shown = {"workers": found.workers, "jobs": found.jobs}
            lines = "\n".join(f"{name}: {count}" for name, count in shown.items())
            typer.echo(json.dumps(shown) if as_json else lines)
            raise typer.Exit(ExitCode.DONE if found.workers else ExitCode.FALSE)
        if threads is not None:
            os.environ["RAYON_NUM_THREADS"] = str(threads)  # before the core makes its threads
        log_lines.configure(check_log_level(log_level), read.operation.log_format)
        await_server(read.database_url, read.database_wait_seconds)
        with closing(Database(read.database_url, system_clock)) as database:
            work(read.jobs, JOBS, database.engine)


provider = typer.Typer(no_args_is_help=True, help="The providers whose keys are pinned.")


@provider.command("add", epilog="Example: ragaudit verifier provider add acme --key 3b6a...")
def pin(
    name: Annotated[str, typer.Argument(help="The provider.")],
    key: Annotated[
        PublicKey, typer.Option(parser=public_key, metavar="HEX", help="Its public key.")
    ],
    settings: SettingsPath = DEFAULT_SETTINGS,
) -> None:
    """Pin a provider's key."""
    from ragaudit.verifier.service import providers

    with failing(), _database(settings) as database:
        providers.add(database, name, key)
        typer.echo(f"pinned {name}")


@provider.command("list", epilog="Example: ragaudit verifier provider list --json")
def show_pinned(
    settings: SettingsPath = DEFAULT_SETTINGS,
    as_json: AsJson = False,
) -> None:
    """List the pinned keys."""
    from ragaudit.verifier.service import providers

    with failing(), _database(settings) as database:
        with database.read() as connection:
            found = providers.listed(connection)
        if as_json:
            rows = [{"name": p.name, "key": p.key.hex(), "added": p.added} for p in found]
            typer.echo(json.dumps(rows))
            return
        for pinned in found:
            typer.echo(f"{pinned.name} {pinned.key.hex()}")


@provider.command("remove", epilog="Example: ragaudit verifier provider remove acme")
def unpin(
    name: Annotated[str, typer.Argument(help="The provider.")],
    settings: SettingsPath = DEFAULT_SETTINGS,
) -> None:
    """Forget a provider's key; its windows stay."""
    from ragaudit.verifier.service import providers

    with failing(), _database(settings) as database:
        providers.remove(database, name)
        typer.echo(f"removed {name}")


@contextmanager
def _database(path: Path) -> "Iterator[Database]":
    from ragaudit.serving.clock import system_clock
    from ragaudit.verifier import settings as settings_files
    from ragaudit.verifier.service.database import Database

    settings = settings_files.load(path)
    settings_files.make_data_folder(settings)
    # Without the fence: the running service holds it, and these commands attest nothing.
    database = Database(settings.database_url, system_clock)
    try:
        yield database
    finally:
        database.close()


STYLES = {
    "PASS": "green",
    "FAIL": "bold red",
    "EXCEEDED": "yellow",
    "CONDITIONAL": "yellow",
    "NOT ESTABLISHED": "yellow",
}

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="The verifier (regulator): register, cosign, sample, check, sign verdicts.",
)
app.add_typer(provider, name="provider")
app.add_typer(evidence.app, name="evidence")
app.add_typer(arbiter.app, name="arbiter")
app.add_typer(evidence.test_results, name="test-results")
app.command("migrate", epilog=_MIGRATE)(migrate)
app.command("worker", epilog=_WORKER)(worker)
app.command(
    "export",
    epilog="Example: ragaudit verifier export verdict.json --verdict-key 3b6a... --format oscal",
)(export)
app.command("settings-schema", epilog="Example: ragaudit verifier settings-schema")(print_schema)
app.command(
    "prove-count", epilog="Example: ragaudit verifier prove-count window.zip 5f3a... -o count.json"
)(prove_count)


class Required(StrEnum):
    """How much a re-check must repeat."""

    ALL = "all"


@app.command(epilog="Example: ragaudit verifier init --name regulator.example/cosigner")
def init(
    name: Annotated[str, typer.Option(help="Name of the cosigner's key: a schema-less URL.")],
    directory: Annotated[Path, typer.Option(help="Folder to set up.")] = Path(),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on the loopback.")] = 8742,
) -> None:
    """Write settings, fresh secrets and an empty database; nothing that exists is overwritten."""
    from ragaudit.verifier import keys as key_files
    from ragaudit.verifier import settings as settings_files
    from ragaudit.verifier.service.database import create_tables

    with failing():
        path = directory / SETTINGS_FILE
        if path.exists():
            raise RefusedError("settings exist", where=str(path), expected="a fresh folder")
        keys = key_files.create(directory / "secrets", name)
        document = {"name": name, "data": "data", "secrets": "secrets", "listen": {"port": port}}
        made = settings_files.write(path, document)
        settings_files.make_data_folder(made)
        create_tables(made.database_url)
        typer.echo(f"settings: {path}")
        typer.echo(f"auditor token: {directory / 'secrets' / key_files.TOKEN} (keep it secret)")
        for role, key in keys.public().items():
            if key is not None:
                typer.echo(f"{role}: {key}")


@app.command(epilog="Example: ragaudit verifier terms > terms.toml")
def terms(
    file: Annotated[Path | None, typer.Argument(help="Terms, TOML or JSON.")] = None,
    json_output: AsJson = False,
) -> None:
    """Print the terms of a file, or the shipped ones: what a policy must keep to be audited."""
    from ragaudit.verifier.terms import DEFAULT, Terms

    with failing():
        found = DEFAULT if file is None else Terms.load(file)
        if json_output:
            typer.echo(json.dumps({"digest": found.digest.hex(), "terms": found.to_json()}))
        else:
            typer.echo(found.to_toml() + f"\n# digest: {found.digest.hex()}")


@app.command(epilog="Example: ragaudit verifier positions positions.bin")
def positions(
    file: Annotated[Path, typer.Argument(help="The file to write, 32 MiB.")],
) -> None:
    """Write the first 2^20 generators of positions, for the setting `positions`.

    A verifier that has them checks its first records sooner. It needs no trust in the file.
    """
    from ragaudit.verifier.engines import write_positions

    with failing():
        write_positions(file)
    typer.echo(f"wrote {file}")


@app.command(epilog="Example: ragaudit verifier serve --settings verifier.yaml")
def serve(
    settings: SettingsPath = DEFAULT_SETTINGS,
    engine: Annotated[
        str | None, typer.Option(help="core, reference or auto; overrides the settings.")
    ] = None,
) -> None:
    """Run the service until it is told to stop (SIGINT or SIGTERM)."""
    with loading():
        from ragaudit.serving import server
        from ragaudit.verifier import settings as settings_files
        from ragaudit.verifier.engines import use_positions
        from ragaudit.verifier.service.app import create_app

    with failing():
        loaded = settings_files.load(settings)
        if engine is not None:
            loaded = loaded.model_copy(update={"engine": _engine_name(engine)})
        if loaded.positions is not None:
            use_positions(loaded.positions)
        listen = loaded.listen
        server.run(
            lambda: create_app(loaded),
            host=listen.host,
            port=listen.port,
            certificate=listen.tls_certificate,
            key=listen.tls_key,
            operation=loaded.operation,
            trusted_proxies=listen.trusted_proxies,
        )


@app.command(epilog="Example: ragaudit verifier audit 2026-w48 --wait")
def audit(
    window: Annotated[str, typer.Argument(help="The window.")],
    settings: SettingsPath = DEFAULT_SETTINGS,
    url: Annotated[
        str | None, typer.Option(help="The service; from the settings if absent.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="The auditor's token; in the secrets folder if absent.")
    ] = None,
    whose: Annotated[
        str | None,
        typer.Option(
            "--provider", help="Provider of the window, where several have one of this name."
        ),
    ] = None,
    verdict_key: VerdictKeyIfAny = None,
    allow_unpinned: Annotated[
        bool,
        typer.Option(
            "--allow-unpinned",
            help="Trust the verdict key that the server at --url shows, whoever runs it.",
        ),
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the audit is due.")] = False,
    as_json: AsJson = False,
) -> None:
    """Audit a window: start, follow, print the verdict.

    Exit code: 0 PASS, 1 FAIL, 6 EXCEEDED, 7 CONDITIONAL, 4 REFUSED, 5 the audit is not due yet.
    """

    from ragaudit.ledger.messages.verdict import Verdict
    from ragaudit.verifier.service.remote import NotDue, Remote

    with failing():
        address, token = service(settings, url, token_file)
        # A caller who names service and token is elsewhere: settings here are of another verifier.
        own = None if url is not None and token_file is not None else settings
        pinned = _verdict_key(verdict_key, own, allow_unpinned)
        with Remote(address, token, whose) as remote:
            try:
                remote.start(window)
            except NotDue as not_due:
                if not wait:
                    typer.echo(f"error: {not_due}", err=True)
                    raise typer.Exit(ExitCode.INCOMPLETE) from not_due
            with _progress(window) as show:
                remote.wait(window, show)
            verdict = Verdict.verify(remote.verdict(window), pinned or remote.verdict_key())
        _show(verdict, as_json=as_json)
        code = verdict_code(verdict.result)
    raise typer.Exit(code)


@app.command(epilog="Example: ragaudit verifier recheck window.zip --engine reference --records 3")
def recheck(
    bundle: Annotated[Path, typer.Argument(help="The evidence bundle.")],
    engine: Annotated[str, typer.Option(help="core, reference or auto.")] = "auto",
    records: Annotated[
        int | None,
        typer.Option(min=0, help="Check only this many sampled records, the first ones."),
    ] = None,
    verdict_key: VerdictKeyIfAny = None,
    require: Annotated[
        Required | None,
        typer.Option(help="all: do not begin where not everything can be repeated."),
    ] = None,
    test_result: Annotated[
        list[Path] | None,
        typer.Option(help="A test result that the verdict refers to (repeatable)."),
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", "-s", help="Settings of a verifier, for its models."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the procedure again over a bundle, offline, and compare with its verdict.

    Exit code: 0 the verdict stands and all of it was repeated; 1 it does not stand, or that key
    did not sign it; 5 nothing differs, but not everything was repeated; 2 not a bundle.
    """
    from ragaudit.verifier import engines, models
    from ragaudit.verifier import recheck as rechecking

    with failing():
        if not bundle.is_file():
            raise MalformedError("no such file", where=str(bundle))
        embedder = models.embedder_of(bundle, settings)
        missing = rechecking.obstacles(bundle, records=records) if require else ()
        if missing:
            typer.echo(f"error: not everything can be repeated: {'; '.join(missing)}", err=True)
            raise typer.Exit(ExitCode.INCOMPLETE)
        with _progress("re-check") as show:
            found = rechecking.recheck(
                bundle,
                engine=engines.engine(_engine_name(engine)),
                records=records,
                verdict_key=verdict_key,
                embedder=embedder,
                generators=models.service_of(settings),
                test_results=[evidence.read_file(each) for each in test_result or ()],
                progress=show,
            )
        if as_json:
            typer.echo(json.dumps(_recheck_document(found)))
        else:
            typer.echo("\n".join(found.lines()))
    if found.differences:
        raise typer.Exit(ExitCode.FALSE)
    raise typer.Exit(ExitCode.DONE if found.complete else ExitCode.INCOMPLETE)


def _verdict_key(
    given: PublicKey | None, settings: Path | None, allow_unpinned: bool
) -> PublicKey | None:
    """The key that must have signed: of the option or the settings; None: as the service says.

    Raises:
        MalformedError: it is not known, and nobody said that the service may name it.
    """
    if given is not None:
        return given
    if settings is not None:
        return _own_key(settings).public
    if not allow_unpinned:
        raise MalformedError(
            "the verdict key is not pinned: whoever answers at --url could have signed",
            expected="--verdict-key, or --allow-unpinned",
        )
    return None


@contextmanager
def _progress(label: str) -> Iterator[Callable[[str, int, int], None]]:
    """A live line on standard error; the function shows step, done and total in it."""
    from ragaudit.encoding.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def show(step: str, done: int, total: int) -> None:
            text = f"{label}: {step}"
            bar.update(task, description=text, completed=done, total=total or None)

        yield show


def _recheck_document(found: "Recheck") -> dict[str, Any]:
    return {
        "window": found.verdict.predicate.window,
        "result": found.verdict.result,
        "claims": found.verdict.predicate.to_json().get("claims"),
        "stands": not found.differences,
        "complete": found.complete,
        "repeated": {"checks": found.checks, "proofs": found.proofs},
        "part": found.part,
        "engine": found.outcome.engine,
        "checks": [
            {"number": check.number, "id": check.id, "status": str(check.status)}
            for check in found.outcome.checks
        ],
        "differences": list(found.differences),
        "not_repeated": list(found.not_repeated),
        "notes": list(found.notes),
    }


def _engine_name(name: str) -> "EngineName":
    match name:
        case "auto" | "core" | "reference":
            return name
    raise MalformedError(f"no engine {name!r}", where="--engine", expected="core, reference, auto")


def _show(verdict: "Verdict", *, as_json: bool) -> None:
    from ragaudit.encoding.console import Console
    from rich.table import Table

    predicate = verdict.predicate
    if as_json:
        typer.echo(json.dumps(predicate.to_json()))
        return
    from ragaudit.verifier.report.view import overlapping, withheld
    from ragaudit.verifier.report.wording import gravity

    console = Console()
    table = Table("no.", "check", "status", "reason", title=f"window {predicate.window}")
    for check in sorted(predicate.checks, key=lambda row: gravity(row.status)):
        status = check.status
        styled = f"[{STYLES[status]}]{status}[/]" if status in STYLES else status
        table.add_row(str(check.number), check.id, styled, _inert(check.reason))
    console.print(table)
    if predicate.warning:
        console.print(_inert(predicate.warning))
    results = predicate.claims.results.items()
    for (name, result), said in zip(results, predicate.claims.statements, strict=True):
        console.print(f"{name}: [{STYLES.get(result, 'bold')}]{result}[/]: {_inert(said)}")
    for text in overlapping(predicate):
        console.print(f"together: {_inert(text)}")
    if said_of_rows := withheld(predicate):
        console.print(f"withheld: {_inert(said_of_rows)}")
    console.print(f"result: [{STYLES.get(verdict.result, 'bold')}]{verdict.result}[/]")


def _inert(text: str) -> str:
    """A text that may hold the provider's: it must not look like another result."""
    from rich.markup import escape

    return escape(one_line(text))
