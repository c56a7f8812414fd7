"""`ragaudit plan`: privacy cost and search quality of a window."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragaudit.cli.commands import Command, Group
from ragaudit.encoding.commands import report_error
from ragaudit.encoding.errors import (
    InvalidArgumentError,
    MalformedError,
    RagauditError,
    UnsupportedError,
)
from ragaudit.encoding.text import MAX_PLACES

if TYPE_CHECKING:
    from rich.progress import Progress


OPTIONS = frozenset({
    "epsilon", "delta", "queries", "coalition", "delta_policy", "relation", "rows_per_document",
    "slots", "windows", "sigma", "index", "questions", "tenant", "top_k", "trials", "recall",
    "seed", "plots", "asked", "supporting", "voters", "vocabulary", "tokens", "uses",
})  # fmt: skip
"""Names in `where` that are options of the commands."""


def decimal_text(text: str, name: str = "") -> str:
    """Return a number such as ``1e-6`` in the plain form of policies, ``0.000001``.

    Args:
        text: as typed.
        name: of the option, where nothing else adds it.

    Raises:
        InvalidArgumentError: no finite number >= 0, or more than 12 places or 9 digits before them.
    """
    expected = f"a number as 0.25 or 1e-6, below 10^9, of at most {MAX_PLACES} places"
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise InvalidArgumentError(
            f"{text!r} is no number", where=name, expected=expected
        ) from None
    # 10^9 is more than any policy has: a typing error is named here and not far below.
    if not value.is_finite() or value < 0 or (value and value.adjusted() >= 9):
        raise InvalidArgumentError(f"{text!r} is out of range", where=name, expected=expected)
    if value and value.normalize().as_tuple().exponent < -MAX_PLACES:  # type: ignore[operator]
        raise InvalidArgumentError(f"{text!r} has too many places", where=name, expected=expected)
    return f"{value.normalize():f}" if value else "0"


def _with_option_names(error: RagauditError) -> RagauditError:
    """Return the same error with ``--delta-policy`` for ``delta_policy``.

    Args:
        error: whose ``where`` begins with a name of OPTIONS, or any other.
    """
    head, comma, rest = error.where.partition(",")
    if head not in OPTIONS:
        return error
    where = f"--{head.replace('_', '-')}{comma}{rest}"
    return type(error)(error.what, where=where, expected=error.expected)


@contextmanager
def failing(as_json: bool) -> Iterator[None]:
    """Turn an error into one message and an exit status, without a traceback.

    Args:
        as_json: the message is a JSON object on standard output.
    """
    try:
        try:
            yield
        except ModuleNotFoundError as error:
            raise UnsupportedError(
                f"this needs the module {error.name}",
                expected="ragaudit-cli with its extras `plan` and `plots`",
            ) from error
    except RagauditError as error:
        code = report_error(_with_option_names(error), as_json=as_json)
        raise typer.Exit(code) from None


class PlanGroup(Group):
    """Runs `window` where no command is named: `ragaudit plan --epsilon 8 ..`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before options."""
        return super().parse_args(
            ctx, args if args and args[0] in self.commands else ["window", *args]
        )


app = typer.Typer(cls=PlanGroup)

_EXAMPLES = """Examples:

  ragaudit plan --epsilon 8 --delta 1e-6 --queries 50 --coalition 5 --delta-policy 1e-5

  ragaudit plan --sigma 0.1 --delta 1e-6 --queries 50 --coalition 5 --delta-policy 1e-5 --json

  ragaudit plan --epsilon 8 --delta 1e-6 --queries 50 --coalition 5 --delta-policy 1e-5
  --index prover/prover.yaml --tenant shop --questions questions.txt --plots plots

recall@K: the share of the K best rows, by the exact score, that is returned. Rank loss: by how
many places the returned rows are worse than the best ones, on average. Both are averaged over
questions; intervals are Student's t, 95 %, the unit is the question.

Private generated answers are planned by `ragaudit plan generation`.

Exit code: 0 the plan was made, whatever it says; 2 bad options or files, or a part that is not
installed; 3 a folder that cannot be written; 4 no noise keeps the promise."""


_GENERATION_EXAMPLES = """Examples:

  ragaudit plan generation --epsilon 8 --questions 100 --asked 3 --supporting 40

  ragaudit plan generation --epsilon 8 --questions 100 --supporting 40 --vocabulary 50272 --json

All chances are of the best case: every voter who reads a supporting document names the right
token, the others read nothing. A real model does worse (ragaudit reproduce generation).

Exit code: 0 the plan was made, whatever it says; 2 bad options."""


@app.command("window", cls=Command, epilog=_EXAMPLES)
def plan(
    context: typer.Context,
    delta: Annotated[
        str,
        typer.Option(
            parser=decimal_text,
            metavar="NUMBER",
            help="delta of the promise to one account, as 1e-6.",
        ),
    ],
    queries: Annotated[int, typer.Option(help="r, queries of one account in a window.")],
    coalition: Annotated[int, typer.Option(help="k_max, accounts that may pool their answers.")],
    delta_policy: Annotated[
        str,
        typer.Option(
            parser=decimal_text, metavar="NUMBER", help="delta at which a coalition is priced."
        ),
    ],
    epsilon: Annotated[
        str | None,
        typer.Option(
            parser=decimal_text,
            metavar="NUMBER",
            help="Promised to one account; sigma follows from it.",
        ),
    ] = None,
    sigma: Annotated[
        str | None,
        typer.Option(
            parser=decimal_text, metavar="NUMBER", help="Price this noise (cosine units) instead."
        ),
    ] = None,
    relation: Annotated[
        str, typer.Option(help="What neighbours differ in: replace or null-replace.")
    ] = "replace",
    rows_per_document: Annotated[
        int, typer.Option(help="g, rows that one document may own; 1: the row is protected.")
    ] = 1,
    slots: Annotated[
        int | None,
        typer.Option(
            help="Accounts that the tenant can have.", show_default="64, or k_max if more"
        ),
    ] = None,
    windows: Annotated[int, typer.Option(help="Windows of these terms on the same documents.")] = 1,
    simulate: Annotated[
        bool, typer.Option("--simulate/--no-simulate", help="Try the noise on an index.")
    ] = True,
    index: Annotated[
        Path | None,
        typer.Option(
            help="Your index: the prover's settings (.yaml), text files, or embeddings (.npy).",
            show_default="Python's own documentation",
        ),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="One tenant of it.", show_default="all")
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="One question a line, or their embeddings (.npy).",
            show_default="made from the texts",
        ),
    ] = None,
    top_k: Annotated[int, typer.Option(help="K, rows that a question asks for.")] = 5,
    trials: Annotated[int, typer.Option(help="Draws of noise for each question and sigma.")] = 3,
    recall: Annotated[
        list[float] | None,
        typer.Option(
            help="Recall whose epsilon is wanted; repeatable.", show_default="0.5 0.8 0.9 0.95"
        ),
    ] = None,
    seed: Annotated[str, typer.Option(help="Makes the draws repeatable.")] = "0",
    plots: Annotated[
        Path | None, typer.Option(help="Folder for plots, PNG and SVG; made if missing.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Plan a window: sigma for a promise, what coalitions learn, what is left of retrieval.

    Nothing is changed: put sigma into the prover's settings if you like what you see.
    """
    # Imported here, so that --help and mistyped options answer at once.
    with failing(as_json):
        from ragaudit.cli.plan import plots as drawing  # noqa: PLC0415
        from ragaudit.cli.plan.run import Trial, make_plan  # noqa: PLC0415
        from ragaudit.privacy.planning.budget import Targets  # noqa: PLC0415

        targets = Targets(
            epsilon=epsilon,
            delta=delta,
            queries=queries,
            coalition=coalition,
            delta_policy=delta_policy,
            relation=relation,
            rows_per_document=rows_per_document,
            slots=max(64, coalition) if slots is None else slots,
            windows=windows,
        )
        trial = Trial(index, questions, tenant, top_k, trials, seed)
        if recall is not None:
            trial = replace(trial, recalls=tuple(recall))
        if not simulate:
            _check_nothing_to_try(context)
        if plots is not None:
            import_module("matplotlib")  # if it is missing, the command fails before the work
            drawing.check_folder(plots)
        with _watching() as watcher:
            result = make_plan(targets, sigma, trial if simulate else None, watcher)
            drawings = None
            if plots is not None:
                watcher.stage("drawing")
                files = drawing.write(plots, drawing.draw(result))
                drawings = drawing.Plots(files, drawing.left_out(result))
    if as_json:
        from ragaudit.cli.plan.show import document  # noqa: PLC0415

        typer.echo(json.dumps(document(result, drawings)))
        return
    from ragaudit.cli.plan.show import show  # noqa: PLC0415
    from ragaudit.encoding.console import Console  # noqa: PLC0415

    show(Console(), result, drawings)


def _check_nothing_to_try(context: typer.Context) -> None:
    """Check that no option is given that only a simulation would use."""
    for name in ("index", "questions", "tenant", "top_k", "trials", "recall", "seed"):
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise MalformedError(
                "nothing is simulated", where=name, expected="no --no-simulate beside it"
            )


@app.command("generation", cls=Command, epilog=_GENERATION_EXAMPLES)
def generation(
    epsilon: Annotated[
        str,
        typer.Option(
            parser=decimal_text,
            metavar="NUMBER",
            help="Of a row, over all accounts and questions (null-replace).",
        ),
    ],
    questions: Annotated[int, typer.Option(help="Of the window, of all accounts together.")],
    supporting: Annotated[
        int, typer.Option(help="Documents that hold the answer to a question, usually.")
    ],
    asked: Annotated[
        int, typer.Option(help="Questions that one document is relevant to, usually.")
    ] = 1,
    voters: Annotated[int, typer.Option(help="m; each reads one document.")] = 30,
    vocabulary: Annotated[int, typer.Option(help="Tokens of the model, all of them.")] = 50_272,
    tokens: Annotated[
        int, typer.Option(help="Of an answer, that the public model does not know.")
    ] = 4,
    delta: Annotated[
        str, typer.Option(parser=decimal_text, metavar="NUMBER", help="Of DP-KSA, as 1e-6.")
    ] = "0.000001",
    uses: Annotated[
        int | None, typer.Option(help="M, to be judged beside the one that is advised.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Plan private answers: M and eps_q, what will be answered, what drains budgets.

    Every document has a budget of M answers, whoever asks; each costs it eps_q = epsilon / M.
    """
    with failing(as_json):
        from ragaudit.cli.plan.generation import Terms, document, lines, make  # noqa: PLC0415

        terms = Terms(
            Fraction(epsilon), Fraction(delta),
            questions, asked, supporting, voters, vocabulary, tokens, uses,
        )  # fmt: skip
        if not 2 <= vocabulary <= 2**32:
            raise MalformedError(
                f"{vocabulary} tokens", where="vocabulary", expected="2 to 4294967296"
            )
        made = make(terms)
    if as_json:
        typer.echo(json.dumps(document(made)))
        return
    typer.echo("\n".join(lines(made)))


class _Watch:
    """Shows a simulation's progress on standard error."""

    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._task = progress.add_task("planning", total=None)

    def stage(self, what: str) -> None:
        self._progress.update(self._task, description=what, total=None)

    def asked(self, done: int, total: int) -> None:
        self._progress.update(
            self._task, description="asking questions", completed=done, total=total
        )


@contextmanager
def _watching() -> Iterator[_Watch]:
    from ragaudit.encoding.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        yield _Watch(progress)
