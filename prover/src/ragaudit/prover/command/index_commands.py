"""``ragaudit prover index``: later versions of an index, by the running service."""

from urllib.parse import quote

import typer
from ragaudit.encoding.commands import failing
from ragaudit.prover.command.console import JsonOption, SettingsOption, emit, progress_bar
from ragaudit.prover.command.operator_commands import (
    DEFAULT_SETTINGS,
    Operator,
    TokenOption,
    UrlOption,
)

# A proof about millions of rows takes minutes.
REFRESH_SECONDS = 3600.0

app = typer.Typer(
    help="Indexes of open windows.\n\nExample: ragaudit prover index refresh 2026-11 shop",
    no_args_is_help=True,
)


@app.callback()
def group() -> None:
    """Keep ``refresh`` a command of its own, also while it is the only one."""


@app.command("refresh")
def refresh(
    window: str,
    tenant: str,
    settings: SettingsOption = DEFAULT_SETTINGS,
    url: UrlOption = None,
    token_file: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Commit to a tenant's documents as they are now; in force from the next instant on.

    Example: ragaudit prover index refresh 2026-11 shop
    """
    with failing(as_json):
        operator = Operator(settings, url, token_file, REFRESH_SECONDS)
        path = f"/windows/{quote(window, safe='')}/tenants/{quote(tenant, safe='')}/refresh"
        with progress_bar(as_json, f"committing to the documents of {tenant}"):
            answer = operator.call("POST", path)
        emit(answer, as_json)
