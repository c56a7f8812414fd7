"""The `ragaudit` command: the command groups of the installed distributions."""

import sys
from collections.abc import Sequence
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path
from typing import Annotated, Any

import typer
from ragaudit.cli.commands import COMPLETION, Command, Group, adopted, ended
from ragaudit.encoding.commands import loading
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.encoding.private_process import keep_private

GROUP = "ragaudit.commands"
"""Members add a command group by an entry point of this group that names a typer app.

The first line of its module's docstring, "`ragaudit NAME`: what it is for.", is its help in the
list of commands, so that the list imports none of them.
"""


class MemberGroup(Group):
    """Commands found in the installed distributions, each imported only when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return sorted(_commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a stand-in with name and help, None for an unknown name."""
        entry = _commands().get(cmd_name)
        return None if entry is None else Command(cmd_name, help=_help(entry))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command to run: only now its module is imported.

        Raises:
            UnsupportedError: a module that the command needs is not installed.
        """
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if command is None else _load(_commands()[str(command.name)]), rest


@cache
def _commands() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _help(entry: EntryPoint) -> str:
    """Return what a command is for, from the source of its module, which is not run."""
    source = _source(entry.module)
    if source is None:
        return f"(not available: {entry.module} is not installed)"
    return source.partition("\n")[0].strip('"').partition(": ")[2]


def _source(module: str) -> str | None:
    """Return a module's source; unlike `importlib.util.find_spec` this imports no package."""
    path: Sequence[str] | None = None
    name, origin = "", None
    for part in module.split("."):
        name = f"{name}.{part}".lstrip(".")
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path, origin = spec.submodule_search_locations, spec.origin
    return None if origin is None else Path(origin).read_text(encoding="utf-8")


def _load(entry: EntryPoint) -> Any:
    """Return the command group of an entry point; UnsupportedError says what is missing."""
    try:
        with loading():
            group = typer.main.get_command(adopted(entry.load()))
    except ModuleNotFoundError as error:
        raise missing(entry.name, error.name or "?") from None
    group.name = entry.name
    # Of the whole command, not of each of its groups.
    group.params = [each for each in group.params if each.name not in COMPLETION]
    return group


def missing(name: str, module: str) -> UnsupportedError:
    """Return the error of a command whose part is not installed.

    Args:
        name: of the command.
        module: dotted, that could not be imported.
    """
    outermost = module.split(".")
    ours = outermost[0] == "ragaudit" and len(outermost) > 1
    return UnsupportedError(
        f"'{name}' needs the module {module}",
        expected=f"the distribution ragaudit-{outermost[1]}"
        if ours
        else "its distribution, or ragaudit-cli with the extra plan or plots",
    )


app = typer.Typer(
    cls=MemberGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    # Its tracebacks print local variables, and keys may be among them.
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # half of the time that this help would take
    help="Verifiable privacy audits for multi-tenant retrieval-augmented generation.",
)


def _show_version(flag: bool) -> None:
    if flag:
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
    """Entry point of the console script."""
    # Most commands read a key. One that measures has none but of its own scenes, and asks the
    # system about itself what a private process is not told.
    if sys.argv[1:2] != ["bench"]:
        keep_private()
    sys.exit(ended(app, as_json="--json" in sys.argv))
