"""Options that several commands of `ragaudit bench` have."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "MAX_ROWS",
    "Allowance",
    "AsJson",
    "Cores",
    "Dimension",
    "Keep",
    "PostgreSql",
    "Queries",
    "Records",
    "Rows",
    "Runs",
    "Sigma",
    "TopK",
]

MAX_ROWS = 2**24  # as many as a statement may have

Rows = Annotated[int, typer.Option("--rows", min=2, max=MAX_ROWS, help="N, rows of the index.")]
Dimension = Annotated[int, typer.Option("--dim", min=1, max=4096, help="d, entries of a row.")]
TopK = Annotated[int, typer.Option("--top-k", min=1, max=1000, help="K, rows asked for; below N.")]
Sigma = Annotated[str, typer.Option("--sigma", help="Noise parameter, a decimal in cosine units.")]
Queries = Annotated[
    int, typer.Option("--queries", min=1, max=100_000, help="r, queries of an account.")
]
Records = Annotated[
    int, typer.Option("--records", min=1, max=100_000, help="R, records of one tenant.")
]
Runs = Annotated[int, typer.Option("--runs", min=1, max=10_000, help="Timed runs.")]
Allowance = Annotated[
    float, typer.Option("--seconds", min=0, help="Start no further run after this long.")
]
Cores = Annotated[int | None, typer.Option("--cores", min=1, help="Cores to use; all if unset.")]
Keep = Annotated[
    Path | None, typer.Option("--keep", help="Keep rows and commitments here and use them again.")
]
PostgreSql = Annotated[
    str | None,
    typer.Option(
        "--postgresql",
        help="URL of a PostgreSQL server that may create databases; SQLite if unset.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
