"""The `ragaudit` command: its own commands and the groups of the installed members."""

import sys
from importlib.metadata import EntryPoint, entry_points, version
from typing import Annotated, Any

import typer
from ragaudit.encoding.commands import ExitCode, report_error
from ragaudit.encoding.errors import RagauditError, UnsupportedError
from typer.core import TyperGroup

__all__ = ["app", "run"]

GROUP = "ragaudit.commands"
"""Members add a command group by an entry point of this group that names a typer app."""

_OWN = {
    "demo": EntryPoint("demo", "ragaudit.cli.demo.command:app", GROUP),
    "bench": EntryPoint("bench", "ragaudit.cli.bench.command:app", GROUP),
    "plan": EntryPoint("plan", "ragaudit.cli.plan.command:app", GROUP),
    "reproduce": EntryPoint("reproduce", "ragaudit.cli.reproduce.command:app", GROUP),
    "risk": EntryPoint("risk", "ragaudit.cli.risk.command:app", GROUP),
}


class MemberGroup(TyperGroup):
    """Commands found in the installed distributions, each imported only when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted({*super().list_commands(ctx), *_commands()})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = _commands().get(cmd_name)
        return super().get_command(ctx, cmd_name) if entry is None else _load(entry)


def _commands() -> dict[str, EntryPoint]:
    return {**{each.name: each for each in entry_points(group=GROUP)}, **_OWN}


def _load(entry: EntryPoint) -> Any:
    """The command group of an entry point, or one that says what is missing."""
    try:
        group = typer.main.get_command(entry.load())
    except ModuleNotFoundError as error:
        group = typer.main.get_command(_unavailable(entry.name, error.name or "?"))
    group.name = entry.name
    return group


def _unavailable(name: str, module: str) -> typer.Typer:
    missing = typer.Typer(help=f"(not available: {module} is not installed)")

    @missing.command(
        name,
        help=f"(not available: {module} is not installed)",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    def unavailable() -> None:
        raise UnsupportedError(
            f"'{name}' needs the module {module}", expected="install the ragaudit member with it"
        )

    return missing


app = typer.Typer(
    cls=MemberGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Verifiable privacy audits for multi-tenant retrieval-augmented generation.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ragaudit {version('ragaudit-cli')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    pass


def run() -> None:
    """Entry point of the console script: errors of ours become one line and an exit code."""
    try:
        app()
    except RagauditError as error:
        sys.exit(report_error(error))
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(ExitCode.INTERRUPTED)
