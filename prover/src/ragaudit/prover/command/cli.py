"""``ragaudit prover``: set up, load documents, check, serve; accounts and windows.

Exit codes are those of `ragaudit.encoding.commands`.
"""

import os
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.commands import ExitCode, failing, loading
from ragaudit.encoding.text import hex_encode, rfc3339
from ragaudit.prover.command.account_commands import accounts, tenants
from ragaudit.prover.command.ingest import PASSAGE_CHARACTERS
from ragaudit.prover.command.operator_commands import (
    JsonOption,
    SettingsOption,
    emit,
    indexes,
    progress_bar,
    windows,
)

app = typer.Typer(
    name="prover",
    help="The prover sidecar: answers by noise-then-select, and can prove it.\n\n"
    "Example: ragaudit prover init --provider example.org --folder prover",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(accounts, name="account")
app.add_typer(tenants, name="tenant")
app.add_typer(windows, name="window")
app.add_typer(indexes, name="index")


@app.command()
def migrate(
    settings: SettingsOption = Path("prover/prover.yaml"), as_json: JsonOption = False
) -> None:
    """Bring the database of an earlier release to this one, or make its tables if it has none.

    Stop the service and its workers and back the database up first: there is no way back but the
    backup. Nothing is done by halves; a database of this release stays as it is. The queue of
    jobs, if the settings ask for one, is made anew: the service fills it again.

    Example: ragaudit prover migrate --settings prover/prover.yaml
    """
    from ragaudit.prover.settings import load_settings
    from ragaudit.prover.store.database import Store
    from ragaudit.prover.work import JOBS
    from ragaudit.serving.jobs.opening import make_queue

    with failing(as_json):
        read = load_settings(settings)
        done = Store.migrate(read.store.url)
        make_queue(read.jobs, JOBS, read.store.url)
        emit({"before": done.before or "no tables", "after": done.after}, as_json)


@app.command()
def worker(
    settings: SettingsOption = Path("prover/prover.yaml"),
    threads: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Threads; one for each core if unset.")
    ] = None,
    status: Annotated[
        bool, typer.Option("--status", help="Say how many workers and jobs there are, and end.")
    ] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    as_json: JsonOption = False,
) -> None:
    """Prove and commit for the service, on this machine, until SIGTERM; needs PostgreSQL.

    On SIGTERM or SIGINT it ends after the job at hand. Start one for every few cores, on every
    machine that sees the database and the folder of the arrays. It needs no key.

    Exit code: 0 it was told to stop, or workers are alive; 1 --status finds none alive; others as
    every command.

    Example: ragaudit prover worker --settings prover/prover.yaml --threads 2
    """
    from ragaudit.ledger.log.database import await_server
    from ragaudit.prover.settings import load_settings
    from ragaudit.prover.store.database import Store
    from ragaudit.prover.work import JOBS
    from ragaudit.serving import log_lines
    from ragaudit.serving.jobs.opening import open_queue, work
    from ragaudit.serving.server import check_log_level

    with failing(as_json):
        read = load_settings(settings)
        if status:
            with open_queue(read.jobs, JOBS, read.store.url) as queue:
                found = queue.state()
            emit({"workers": found.workers, "jobs": found.jobs}, as_json)
            raise typer.Exit(ExitCode.DONE if found.workers else ExitCode.FALSE)
        if threads is not None:
            os.environ["RAYON_NUM_THREADS"] = str(threads)  # before the core makes its threads
        log_lines.configure(check_log_level(log_level), read.operation.log_format)
        await_server(read.store.url, read.store.wait_seconds)
        with closing(Store.open(read.store.url)) as store:
            work(read.jobs, JOBS, store.engine)


@app.command()
def init(
    provider: Annotated[str, typer.Option(help="The provider's name, as policies show it.")],
    folder: Annotated[Path, typer.Option(help="Where settings, keys and database go.")] = Path(
        "prover"
    ),
    verifier: Annotated[str, typer.Option(help="URL of the verifier service.")] = (
        "http://127.0.0.1:8742"
    ),
    as_json: JsonOption = False,
) -> None:
    """Write settings, fresh key files (mode 600) and an empty database.

    Example: ragaudit prover init --provider example.org --folder prover
    """
    from ragaudit.prover.command.set_up import set_up

    with failing(as_json):
        result = set_up(folder, provider=provider, verifier=verifier)
        emit(
            {
                "settings": str(result.settings),
                "operator_token_file": str(result.operator_token),
                "provider_key": hex_encode(result.provider_key.raw),
            },
            as_json,
            "The auditor pins provider_key. Keep the operator token file away from the service.",
        )


@app.command()
def ingest(
    tenant: Annotated[str, typer.Argument(help="The tenant whose documents these are.")],
    paths: Annotated[list[Path], typer.Argument(help="Files or folders: .txt, .md, .jsonl")],
    settings: SettingsOption = Path("prover/prover.yaml"),
    replace: Annotated[bool, typer.Option(help="Forget the tenant's earlier documents.")] = False,
    passage: Annotated[
        int, typer.Option(min=40, max=16_000, help="Characters of a passage, at most.")
    ] = PASSAGE_CHARACTERS,
    as_json: JsonOption = False,
) -> None:
    """Cut a tenant's text files into passages and store them.

    Example: ragaudit prover ingest shop docs/manual.md docs/faq --settings prover/prover.yaml
    """
    from ragaudit.prover.backends.stored import StoredDocuments
    from ragaudit.prover.command.ingest import read_files
    from ragaudit.prover.settings import load_settings
    from ragaudit.prover.store.database import Store

    with failing(as_json):
        with (
            closing(Store.open(load_settings(settings).store.url)) as store,
            progress_bar(as_json, f"reading for {tenant}"),
        ):
            documents = read_files(paths, passage=passage)
            total = StoredDocuments(store).add(tenant, documents, replace=replace)
        emit({"tenant": tenant, "added": len(documents), "documents": total}, as_json)


@app.command()
def check(
    settings: SettingsOption = Path("prover/prover.yaml"), as_json: JsonOption = False
) -> None:
    """Check keys, database, documents, embedder, verifier, clocks and more; change nothing.

    Exit code: 0 nothing is wrong (there may be warnings), 1 something is, 2 the settings themselves
    are malformed.

    Example: ragaudit prover check --settings prover/prover.yaml --json
    """
    from ragaudit.prover.settings import load_settings

    with failing(as_json):
        from ragaudit.prover.command import checks

        faults = checks.run_checks(load_settings(settings))
        shown = checks.explained if as_json else checks.said
        emit({name: shown(fault) for name, fault in faults.items()}, as_json)
        if any(fault and not isinstance(fault, checks.NobodyDisputes) for fault in faults.values()):
            raise typer.Exit(ExitCode.FALSE)


@app.command()
def restore(
    window: Annotated[str, typer.Argument(help="The window that answers no more.")],
    settings: SettingsOption = Path("prover/prover.yaml"),
    reason: Annotated[
        str, typer.Option(help="restore: of database or fence; key-loss: of the noise seed.")
    ] = "restore",
    as_json: JsonOption = False,
) -> None:
    """Resume a window after its database or fence was restored or lost. Stop the service first.

    The database must hold everything that was cosigned, and every answer that the fence knows of:
    what is missing is named, and nothing is changed. A fresh seed is logged, which the next
    instant of the policy activates; nothing is answered before. Calling again does no harm.

    Example: ragaudit prover restore 2026-11 --settings prover/prover.yaml
    """
    from ragaudit.prover.settings import load_settings

    with failing(as_json):
        from ragaudit.prover.service import restore_window

        with progress_bar(as_json, "comparing, and committing to a new seed"):
            done = restore_window(load_settings(settings), window, reason)
        instant = None if done.instant is None else rfc3339(1000 * done.instant)
        emit(
            {"window": window, "epoch": done.epoch, "entry": done.entry,
             "entries": done.entries, "answers_from": instant},
            as_json,
            "Start the service now: the epoch must be cosigned before that instant."
            if instant
            else "No instant is left: start the service, so that the window is closed in order.",
        )  # fmt: skip


@app.command("settings-schema")
def settings_schema() -> None:
    """Print the JSON schema of the settings file.

    Example: ragaudit prover settings-schema > prover.schema.json
    """
    from ragaudit.prover.settings import Settings

    typer.echo(Settings.schema_text())


@app.command()
def serve(
    settings: SettingsOption = Path("prover/prover.yaml"),
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Run the service until it is told to stop (SIGINT or SIGTERM).

    Example: RAGAUDIT_PROVER__SERVER__PORT=8081 ragaudit prover serve --settings prover/prover.yaml
    """
    with loading():
        from ragaudit.prover.http.app import create_app
        from ragaudit.prover.settings import load_settings
        from ragaudit.serving import server

    with failing():
        options = load_settings(settings)
        server.run(
            lambda: create_app(options),
            host=options.server.host,
            port=options.server.port,
            log_level=log_level,
            operation=options.operation,
            trusted_proxies=options.server.trusted_proxies,
        )
