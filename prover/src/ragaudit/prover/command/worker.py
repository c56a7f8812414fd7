"""``ragaudit prover worker``: a process that does the service's long work; ``migrate``, too."""

import os
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.commands import ExitCode, failing
from ragaudit.ledger.log.database import await_server
from ragaudit.prover.command.console import JsonOption, SettingsOption, emit
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store.database import Store
from ragaudit.prover.work import JOBS
from ragaudit.serving import log_lines
from ragaudit.serving.jobs.opening import make_queue, open_queue, work
from ragaudit.serving.server import check_log_level

__all__ = ["migrate", "worker"]


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


def migrate(
    settings: SettingsOption = Path("prover/prover.yaml"), as_json: JsonOption = False
) -> None:
    """Bring the database of an earlier release to this one, or make its tables if it has none.

    Stop the service and its workers and back the database up first: there is no way back but the
    backup. Nothing is done by halves; a database of this release stays as it is. The queue of
    jobs, if the settings ask for one, is made anew: the service fills it again.

    Example: ragaudit prover migrate --settings prover/prover.yaml
    """
    with failing(as_json):
        read = load_settings(settings)
        done = Store.migrate(read.store.url)
        make_queue(read.jobs, JOBS, read.store.url)
        emit({"before": done.before or "no tables", "after": done.after}, as_json)
