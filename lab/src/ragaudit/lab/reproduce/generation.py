"""`ragaudit reproduce generation`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.lab.reproduce.comparison import write_files

__all__ = ["EXAMPLE", "command"]

EXAMPLE = """Examples:

  ragaudit reproduce generation --output results

  ragaudit reproduce generation --quick --json

Exit status: 0 the streams were run, 2 a library is missing, 3 the results could not be written."""

WORLDS = 400
"""Simulated with the record, and as many without, for each coalition."""


def command(
    output: Annotated[
        Path | None, typer.Option(help="Folder for tables (txt, json) and figures.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=2, max=1000, help="Number of corpora, one seed each.")
    ] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first corpus.")] = 20260501,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two small corpora, to see that it runs.")
    ] = False,
    as_json_text: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Private generated answers on invented patient records, at a total epsilon of 1 to 10.

    A stream of 100 questions, some of them about the same disease and some asked again, answered by
    a small real language model that can only copy from its context: closed book, non-private RAG
    and keywords, NAIVE, MURAG, MURAG-ADA and DP-KSA; and an attack on one record's membership by
    coalitions. What the papers report stands beside it, with what can be compared.
    Figures are written with --output; they need the extra `plots`.
    """
    from ragaudit.encoding.console import Console  # noqa: PLC0415
    from ragaudit.lab.generation.transformer import Transformer  # noqa: PLC0415 - numpy
    from ragaudit.lab.reproduce import (  # noqa: PLC0415 - scipy
        generation_arms,
        generation_attack,
        generation_results,
    )
    from rich.progress import Progress  # noqa: PLC0415

    if output is not None:
        # A missing library is told before the work, not after.
        from ragaudit.cli.figures import axes  # noqa: PLC0415
        from ragaudit.lab.reproduce import generation_figures  # noqa: PLC0415

        with axes("", "", ""):
            pass
    size = generation_arms.Size(seeds)
    worlds = WORLDS
    if quick:
        size = generation_arms.Size(2, families=1, questions=8, epsilons=(3, 10))
        worlds = 20
    model = Transformer.load()
    with Progress(console=Console(stderr=True), disable=as_json_text, transient=True) as progress:
        asking = progress.add_task("questions", total=size.seeds * size.questions)
        asked = [
            each
            for number in range(size.seeds)
            for each in generation_arms.run(
                model, seed + number, size, lambda: progress.advance(asking)
            )
        ]
        attacking = progress.add_task("worlds", total=2 * worlds * len(generation_attack.ACCOUNTS))
        attack = generation_attack.points(model, worlds, seed, lambda: progress.advance(attacking))
    found = generation_results.cells(asked)
    terms = {**asdict(size), "seed": seed, "worlds": worlds}
    document = json.dumps(generation_results.document(found, attack, terms), indent=1) + "\n"
    shown = generation_results.text(found, attack)
    if output is not None:
        files = {"generation.json": document.encode(), "generation.txt": shown.encode()}
        write_files(output, {**files, **generation_figures.figures(found, attack)})
    typer.echo(document if as_json_text else shown, nl=False)
