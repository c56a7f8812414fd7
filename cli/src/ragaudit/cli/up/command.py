"""`ragaudit up`: try it in front of your own vector store, on this machine."""

import json
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from ragaudit.encoding.commands import ExitCode, failing, verdict_code
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.settings import service_url

if TYPE_CHECKING:
    from ragaudit.cli.up.show import Shown
    from ragaudit.cli.up.store import Source

app = typer.Typer(pretty_exceptions_enable=False)

PAGE_ROWS = 500

_EXAMPLES = """Examples:

  ragaudit up --chroma http://127.0.0.1:8000

  ragaudit up --chroma http://127.0.0.1:8000 --collection handbook --column year=integer

  ragaudit up --chroma http://127.0.0.1:8000 --shadow

  RAGAUDIT_UP_PGVECTOR="host=127.0.0.1 dbname=rag user=reader password=..." ragaudit up

Exit code: 0 the verdict is PASS (with --shadow, which has none: it ran), 1 FAIL, 3 the store or a
service does not answer, 4 REFUSED, 6 EXCEEDED, 7 CONDITIONAL, 130 interrupted."""


@app.command(epilog=_EXAMPLES)
def up(
    chroma: Annotated[str | None, typer.Option(help="URL of a Chroma server.")] = None,
    pgvector: Annotated[
        str | None,
        typer.Option(
            envvar="RAGAUDIT_UP_PGVECTOR",
            help="Connection string of a PostgreSQL with pgvector; better in the environment, as "
            "it holds a password.",
        ),
    ] = None,
    collection: Annotated[
        list[str] | None, typer.Option(help="Serve this one (repeatable); all if none is named.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="A member of the metadata that filters may name, as year=integer."),
    ] = None,
    shadow: Annotated[
        bool,
        typer.Option("--shadow", help="Let the store answer, compare, and show what would differ."),
    ] = False,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="Refuse what your application would write to the store."),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where the application will point; 0: any.")
    ] = 8100,
    seconds: Annotated[
        float | None, typer.Option(min=1, help="Stop by itself; otherwise at Ctrl-C.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="Secret file of the store's token.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Empty folder for all data, logs and evidence.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Put a prover in front of your vector store, with a verifier that lives as long as it.

    The store is only changed by your application's own writes (with --read-only by nothing), and
    your application only by the address and a key. The window proves integrity: that each answer
    is the exact best rows of what the store held when the window opened, and that no query is
    missing from the log. No epsilon is claimed. You play both parties here, so the verdict proves
    nothing to others: in production, run them at two organisations.
    """
    with failing(as_json):
        from ragaudit.cli.up.show import Shown
        from ragaudit.cli.up.store import of_chroma, of_pgvector
        from ragaudit.encoding.console import Console

        columns = _columns(column or [])
        if shadow and read_only:
            raise MalformedError(
                "the store answers what it is sent", where="--read-only", expected="no --shadow"
            )
        if (chroma is None) == (pgvector is None):
            raise MalformedError("one store", where="options", expected="--chroma or --pgvector")
        source = (
            of_pgvector(pgvector, collection or [])
            if pgvector is not None
            else of_chroma(service_url(chroma or "", "--chroma"), token_file, collection or [])
        )
        shown = Shown(Console(stderr=as_json))
        shown.left_out(source.found)
        if shadow:
            _shadow(source, shown, port, seconds, as_json)
            return
        code = _integrity(source, shown, port, seconds, columns, keep, as_json, read_only)
    raise typer.Exit(code)


def _integrity(
    source: "Source",
    shown: "Shown",
    port: int,
    seconds: float | None,
    columns: dict[str, str],
    keep: Path | None,
    as_json: bool,
    read_only: bool,
) -> ExitCode:
    from ragaudit.cli.up.run import (
        Options,
        Stop,
        run_integrity,
        told_to_stop,
    )

    stop = Stop()
    overrides: dict[str, dict[str, object]] = {
        "window": {"public_columns": columns, "filters": bool(columns)}
    }
    if read_only:
        overrides["surfaces"] = {"writes": False}
    with _folder(keep) as folder, told_to_stop(stop):
        options = Options(
            folder=folder,
            found=source.found,
            backend=source.backend(folder),
            port=port,
            seconds=seconds,
            overrides=overrides,
        )
        try:
            verdict = run_integrity(options, shown, stop)
        finally:
            shown.done()
        from ragaudit.verifier.report import render_text

        (folder / "report.txt").write_text(render_text(verdict), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(verdict.predicate.to_json()))
    else:
        shown.verdict(verdict, keep)
    return verdict_code(verdict.result)


def _shadow(
    source: "Source",
    shown: "Shown",
    port: int,
    seconds: float | None,
    as_json: bool,
) -> None:
    from ragaudit.cli.processes import free_port
    from ragaudit.cli.up.shadow import (
        Tally,
        create_shadow,
        exact_rows,
    )
    from ragaudit.prover.backend_settings import ChromaSettings
    from ragaudit.prover.backends.chroma import ChromaStore
    from ragaudit.serving import server

    if source.chroma is None:
        raise MalformedError(
            "no HTTP goes to this store", where="--shadow", expected="a store behind --chroma"
        )
    found, settings = source.found, source.chroma
    shown.doing("reading the rows")
    with closing(ChromaStore(ChromaSettings.model_validate(settings))) as store:
        rows = exact_rows(store, found.served, PAGE_ROWS)
    tally, own = Tally(), port or free_port()
    shown.shadow_ready(f"http://127.0.0.1:{own}", found)
    if seconds is not None:
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM))
        timer.daemon = True
        timer.start()
    server.run(
        lambda: create_shadow(settings["url"], rows, tally, shown.difference, shown.count),
        host="127.0.0.1",
        port=own,
        log_level="warning",
    )
    shown.done()
    if as_json:
        typer.echo(json.dumps(tally.to_json()))
    else:
        for line in tally.lines():
            shown.line(line)


def _columns(given: list[str]) -> dict[str, str]:
    """Return the types of the public columns by name; the settings judge them."""
    columns = {}
    for text in given:
        name, separator, kind = text.partition("=")
        if not separator or kind not in {"string", "integer", "number", "boolean"}:
            raise MalformedError(
                f"no column: {text!r}",
                where="--column",
                expected="NAME=string, NAME=integer, NAME=number or NAME=boolean",
            )
        columns[name] = kind
    return columns


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """An empty folder: the one that was given, or one that is gone afterwards."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="ragaudit-up-") as made:
            yield Path(made)
        return
    keep.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise MalformedError("not empty", where=str(keep), expected="an empty folder")
    yield keep
