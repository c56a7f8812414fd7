"""``ragaudit verifier worker``: a process that checks arguments for the service."""

import json
import os
from contextlib import closing
from typing import Annotated

import typer
from ragaudit.encoding.commands import ExitCode, failing
from ragaudit.ledger.log.database import await_server
from ragaudit.serving import log_lines
from ragaudit.serving.clock import system_clock
from ragaudit.serving.jobs.opening import open_queue, work
from ragaudit.serving.server import check_log_level
from ragaudit.verifier import settings as settings_files
from ragaudit.verifier.command.options import DEFAULT_SETTINGS, AsJson, SettingsPath
from ragaudit.verifier.service.database import Database
from ragaudit.verifier.work import JOBS

EXAMPLE = "Example: ragaudit verifier worker --settings verifier.yaml --threads 2"


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
