"""`ragaudit reproduce rad`."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from ragaudit.cli.figures import check_installed
from ragaudit.encoding.commands import ExitCode
from ragaudit.lab.reproduce.comparison import Table, as_csv, as_json, as_text, write_files

if TYPE_CHECKING:
    from ragaudit.lab.reproduce.rad_audits import Audit
    from ragaudit.lab.reproduce.rad_bounds import Point
    from ragaudit.lab.reproduce.rad_examples import Attack
    from ragaudit.lab.reproduce.rad_utility import Hours, Imputation

EXAMPLE = """Examples:

  ragaudit reproduce rad --output results

  ragaudit reproduce rad --runs 10000 --json

Exit code: 0 every value of ours meets its reference, 1 some value does not, 2 a library is
missing, 3 the results could not be written."""

EXIT_DISAGREES = ExitCode.FALSE

STAND_INS = (
    "MNIST is not used: scikit-learn's 1,797 handwritten digits of 8 x 8 pixels stand in for it, "
    "and softmax regression for the network.",
    "Porto's and Geolife's locations are not used: synthetic universes of 3,052 and 5,356 records "
    "stand in for them. Prior and attack know no more of a record than its number.",
    "Adult is not used: a prior with the published counts of its five most frequent working hours, "
    "and the rest spread evenly over 1 to 99, stands in for its distribution.",
    "Census and Texas-100X are not used: scikit-learn's digits and its breast cancer records stand "
    "in for them, and a random forest for the classifier that imputes.",
)


class Simulations(NamedTuple):
    """What is sampled, for each figure or table."""

    audits: "tuple[Audit, ...]"
    attacks: "tuple[Attack, ...]"
    points: "tuple[Point, ...]"
    hours: "tuple[Hours, ...]"
    imputations: "tuple[Imputation, ...]"


def command(
    output: Annotated[
        Path | None, typer.Option(help="Folder for tables (txt, csv, json) and figures.")
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1000, max=10**8, help="Attacks per audit and repeat.")
    ] = 10**6,
    trainings: Annotated[
        int, typer.Option(min=2, max=10_000, help="DP-SGD trainings per noise multiplier.")
    ] = 32,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all simulations.")] = 20260401,
    as_json_text: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """The reconstruction-advantage paper: examples, bounds, optimal attacks, audits, recomputed.

    Columns: what the paper prints (with * what a formula or claim of it gives where it prints no
    digits), the same quantity corrected by an independent recomputation, what this code computes,
    its difference from the paper, and the reason for the difference.
    Simulated values are compared in as many digits as the runs settle. Figures are written with
    --output; they need the extra `plots`, the attack on DP-SGD needs `digits`.
    """
    from ragaudit.lab.reproduce import (  # noqa: PLC0415 - scipy
        rad_audits,
        rad_bounds,
        rad_examples,
        rad_utility,
    )

    if output is not None:
        from ragaudit.lab.reproduce import rad_figures  # noqa: PLC0415

        check_installed()
    applied = rad_audits.applicability()
    found = _simulated(runs, trainings, seed, quiet=as_json_text)
    audits = found.audits
    tables = (
        *rad_examples.tables(), *rad_bounds.tables(), rad_utility.utility_table(),
        rad_utility.hours_table(found.hours), *rad_audits.tables(audits),
        rad_bounds.table(found.points), rad_utility.imputation_table(found.imputations),
    )  # fmt: skip
    data = {
        "table-1": rad_audits.as_records(applied),
        "audits": [asdict(audit) for audit in audits],
        "figure-8-ldp-auditor": [asdict(each) for each in rad_audits.rivals(audits)],
        "figure-8-statements": [asdict(each) for each in rad_audits.statements(audits)],
        "dp-sgd-digits": [asdict(attack) for attack in found.attacks],
        "figure-6-data": [asdict(each) for each in found.hours],
        "figure-10-data": [asdict(point) for point in found.points],
        "table-2-data": [asdict(each) for each in found.imputations],
    }
    texts = {
        **{table.name: as_text(table) for table in tables},
        "figure-8-ldp-auditor": rad_audits.rivals_text(audits),
        "table-1": rad_audits.table_1_text(applied),
        "dp-sgd-digits": _digits(found.attacks),
        "stand-ins": _lines(STAND_INS),
    }
    document = _document(tables, data)
    if output is not None:
        files = {"rad.json": document.encode()}
        files |= {f"{name}.txt": text.encode() for name, text in texts.items()}
        files |= {f"{table.name}.csv": as_csv(table).encode() for table in tables}
        files |= {f"{name}.csv": _csv(rows).encode() for name, rows in data.items()}
        write_files(output, {**files, **rad_figures.figures(found)})
    if as_json_text:
        typer.echo(document, nl=False)
    else:
        typer.echo("\n\n".join(texts.values()), nl=False)
    agrees = not any(table.disagreements for table in tables) and all(row.agrees for row in applied)
    raise typer.Exit(0 if agrees else EXIT_DISAGREES)


def _simulated(runs: int, trainings: int, seed: int, *, quiet: bool) -> Simulations:
    import numpy as np  # noqa: PLC0415
    from ragaudit.encoding.console import Console  # noqa: PLC0415
    from ragaudit.lab.reproduce import (  # noqa: PLC0415
        rad_audits,
        rad_bounds,
        rad_examples,
        rad_utility,
    )
    from rich.progress import Progress  # noqa: PLC0415

    # Independent streams: a part's results do not depend on the sizes of the others.
    streams = [np.random.default_rng([seed, part]) for part in range(5)]
    with Progress(console=Console(stderr=True), disable=quiet, transient=True) as progress:

        def task(name: str, total: int) -> Callable[[int], None]:
            number = progress.add_task(name, total=total)
            return lambda done: progress.advance(number, done)

        cases = sum(1 for _ in rad_audits.cases())
        auditing = task("audits of GRR, SS, OUE", 2 * rad_audits.REPEATS * runs * cases)
        training = task("DP-SGD on digits", rad_examples.batches(trainings))
        working = task("working hours", rad_utility.cells())
        # What needs a library first: that it is missing is told at once.
        imputations = rad_utility.impute(streams[4])
        attacks = rad_examples.attack_digits(streams[1], training, trainings)
        hours = rad_utility.points(max(1000, runs // 10), streams[3], working)
        audits = rad_audits.audits(runs, streams[0], auditing)
        points = rad_bounds.points(max(1000, runs // 10), streams[2])
    return Simulations(audits, attacks, points, hours, imputations)


def _document(tables: tuple[Table, ...], data: dict[str, Any]) -> str:
    report = {**as_json(tables), **data, "stand_ins": list(STAND_INS)}
    return json.dumps(_finite(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """JSON has no infinity: it becomes the string "inf"."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return str(value) if value in (float("inf"), float("-inf")) else value


def _csv(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV (RFC 4180); several values of one cell are joined by spaces, names by commas."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow(map(_cell, row.values()))
    return out.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    names = all(isinstance(each, str) for each in value)
    return ", ".join(value) if names else " ".join(map(repr, value))


def _digits(attacks: "tuple[Attack, ...]") -> str:
    lines = [
        "DP-SGD on scikit-learn's digits, 8 candidates (Figure 4)", "",
        "sigma  knowledge  advantage (s.e.)  Algorithm 2 as printed  bound as printed  bound",
    ]  # fmt: skip
    exceeded = 0
    for each in attacks:
        above = each.advantage - 3 * each.error > each.printed_bound
        exceeded += above
        lines.append(
            f"{each.noise_multiplier:5g}  {each.knowledge:9}  {each.advantage:.4f} "
            f"({each.error:.4f})   {each.printed_rule:22.4f}  {each.printed_bound:16.4f}  "
            f"{each.bound:.4f}{'  exceeded' if above else ''}"
        )
    lines += [
        "",
        f"Attacks above the printed bound by three standard errors: {exceeded} of {len(attacks)}. "
        "That it is no bound is shown",
        "without sampling by gradients that form a simplex (dp-sgd-refutation).",
    ]
    return _lines(lines)


def _lines(lines: Any) -> str:
    return "\n".join(lines) + "\n"
