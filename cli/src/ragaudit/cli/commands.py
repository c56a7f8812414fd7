"""How all commands show help, and how they refuse options.

Members declare plain `typer` applications. When the command `ragaudit` loads one, `adopted` gives
its commands the classes of this module, so that all of them look and fail alike.
"""

import inspect
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any

import typer
from ragaudit.encoding.commands import ExitCode, Unwritable, escaped_output, report_error
from ragaudit.encoding.errors import MalformedError, RagauditError, UnsupportedError
from typer.core import TyperCommand, TyperGroup

# Any fault of a command line; typer exports only the class under it.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]

COMPLETION = {"install_completion", "show_completion"}
"""Options of the whole command that only show or install what a shell needs."""

_NAMED = "ragaudit.cli.named"

_HEADING = re.compile(r"(Examples?:)\s+(?=\S)")
# A command to be copied, perhaps with a variable of the environment before it.
_COMMAND = re.compile(r"(?:[A-Z_]+=(?:\"[^\"]*\"|\S*) )?ragaudit ")
# What pydantic says before the words of a reader of ours, and what it says in words of its own.
_FOREIGN = re.compile(r"Value error, |Input should be (.+?)(?:, unable to .*)?$")


def flowing(text: str) -> list[str]:
    """Return the paragraphs of a help text, each one line; those to be copied begin with spaces.

    Args:
        text: paragraphs as they stand in the source, which breaks their lines somewhere. One that
            is a command, with or without ``Example:`` before it, is to be copied.
    """
    paragraphs = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text).partition("\f")[0]):
        words = " ".join(line.strip() for line in block.splitlines())
        heading = _HEADING.match(words)
        rest = words[heading.end() :] if heading else words
        if _COMMAND.match(rest):
            paragraphs += [heading[1]] if heading else []
            paragraphs.append(f"  {rest}")
        else:
            paragraphs.append(words)
    return [each for each in paragraphs if each.strip()]


def ended(act: Callable[[], Any], as_json: bool) -> int:
    """Do something, and return its exit code: one of `ExitCode` for each kind of end.

    What it writes is escaped (`ragaudit.encoding.printable`); what fails is said in one line.

    Args:
        act: a command, which may raise, exit, or return its code; None is DONE.
        as_json: as for `report_error`.
    """
    with escaped_output():
        try:
            code = act()
            sys.stdout.flush()
            return int(code or ExitCode.DONE)
        except _USAGE_ERROR as error:
            return report_error(_complaint(error), as_json=as_json)
        except Unwritable as error:
            # Not as JSON: that would go where nothing is taken.
            with suppress(Unwritable):
                report_error(error)
            return ExitCode.UNAVAILABLE
        except RagauditError as error:
            return report_error(error, as_json=as_json)
        except ModuleNotFoundError as error:
            what, whose = (
                f"this needs the module {error.name}",
                "its distribution, or an extra of ours",
            )
            return report_error(UnsupportedError(what, expected=whose), as_json=as_json)
        except (typer.Abort, KeyboardInterrupt):
            typer.echo("interrupted", err=True)
            return ExitCode.INTERRUPTED
        except Exception:
            # Lines of our source, and no values of variables: keys may be among them.
            traceback.print_exc()
            return ExitCode.INTERNAL


def _complaint(error: Any) -> MalformedError:
    """Return what a fault of the command line says, and where there is help."""
    ctx = getattr(error, "ctx", None)
    hint = "" if ctx is None else f"; see {ctx.command_path} --help"
    return MalformedError(f"{error.message}{hint}")


class _Alike:
    """What commands and groups have in common."""

    help: str | None
    epilog: str | None
    short_help: str | None

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run it, and exit.

        Args:
            args, extra: as of typer; without ``args`` those of the process are the command line.
        """
        words = args[0] if args else extra.pop("args", None)
        given = sys.argv[1:] if words is None else list(words)
        extra["standalone_mode"] = False
        act = partial(super().main, args=given, **extra)  # type: ignore[misc]
        sys.exit(ended(act, as_json="--json" in given))

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command is for."""
        self._write(self.help, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write examples and the exit codes."""
        self._write(self.epilog, formatter)

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first paragraph, whole."""
        return next(iter(flowing(self.short_help or self.help or "")), "")

    def _write(self, text: str | None, formatter: Any) -> None:
        for paragraph in flowing(text or ""):
            formatter.write_paragraph()
            with formatter.indentation():
                if paragraph.startswith(" "):  # never broken: it is copied
                    formatter.write(" " * formatter.current_indent + paragraph + "\n")
                else:
                    formatter.write_text(paragraph)


class Command(_Alike, TyperCommand):
    """A command that names everything that is wrong with its options, at once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line.

        Raises:
            BadParameter: values of options that are unusable, and options that are missing.
        """
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter:
            faults = self._faults(ctx, given)
        raise typer.BadParameter("; ".join(faults), ctx=ctx)

    def _faults(self, ctx: Any, args: list[str]) -> list[str]:
        options, _, _ = self.make_parser(ctx).parse_args(args=args)
        faults, missing = [], []
        for parameter in self.get_params(ctx):
            try:
                parameter.handle_parse_result(ctx, options, args)
            except typer.BadParameter as error:
                name = _name(parameter)
                # Of a missing one there is nothing to say but its name.
                if type(error) is typer.BadParameter:
                    faults.append(f"{name}: {_FOREIGN.sub(_reworded, error.message)}")
                else:
                    missing.append(name)
        return [*faults, *([f"missing: {', '.join(missing)}"] if missing else [])]


class Group(_Alike, TyperGroup):
    """A group of commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; show the help of a group that is called alone."""
        ctx.meta[_NAMED] = args[:1] != [] and not args[0].startswith("-")
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            ctx.exit(ExitCode.BAD_INPUT)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options; once a command is named, none of those that would end it here."""
        found = super().get_params(ctx)
        # Not given, they have no value, and for that one typer loads pydantic: 50 ms.
        ending = {"help", *COMPLETION} if ctx.meta.get(_NAMED) else ()
        return [each for each in found if each.name not in ending]


def _reworded(found: re.Match[str]) -> str:
    return f"not usable (expected {found[1]})" if found[1] else ""


def _name(parameter: Any) -> str:
    """Return how a parameter is written: the longest of an option's names, or FILES."""
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    return str(max(parameter.opts, key=len))


def adopted(application: typer.Typer) -> typer.Typer:
    """Return an application whose commands look and refuse as all do.

    Args:
        application: of a member; it stays as it is.
    """
    ours = copy(application)
    ours.rich_markup_mode = None  # its panels cut what is to be copied
    ours.info = copy(application.info)
    if ours.info.cls is TyperGroup or not isinstance(ours.info.cls, type):
        ours.info.cls = Group
    ours.registered_commands = [copy(each) for each in application.registered_commands]
    for command in ours.registered_commands:
        if command.cls is TyperCommand or command.cls is None:
            command.cls = Command
    ours.registered_groups = [copy(each) for each in application.registered_groups]
    for group in ours.registered_groups:
        assert group.typer_instance is not None
        group.typer_instance = adopted(group.typer_instance)
    return ours
