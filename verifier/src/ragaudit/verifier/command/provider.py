"""``ragaudit verifier provider``: the providers whose keys are pinned."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.commands import failing
from ragaudit.encoding.options import public_key
from ragaudit.encoding.signing import PublicKey
from ragaudit.serving.clock import system_clock
from ragaudit.verifier import settings as settings_files
from ragaudit.verifier.command.options import DEFAULT_SETTINGS, AsJson, SettingsPath
from ragaudit.verifier.service import providers
from ragaudit.verifier.service.database import Database

app = typer.Typer(no_args_is_help=True, help="The providers whose keys are pinned.")


@app.command("add", epilog="Example: ragaudit verifier provider add acme --key 3b6a...")
def add(
    name: Annotated[str, typer.Argument(help="The provider.")],
    key: Annotated[
        PublicKey, typer.Option(parser=public_key, metavar="HEX", help="Its public key.")
    ],
    settings: SettingsPath = DEFAULT_SETTINGS,
) -> None:
    """Pin a provider's key."""
    with failing(), _database(settings) as database:
        providers.add(database, name, key)
        typer.echo(f"pinned {name}")


@app.command("list", epilog="Example: ragaudit verifier provider list --json")
def show(
    settings: SettingsPath = DEFAULT_SETTINGS,
    as_json: AsJson = False,
) -> None:
    """List the pinned keys."""
    with failing(), _database(settings) as database:
        with database.read() as connection:
            found = providers.listed(connection)
        if as_json:
            rows = [{"name": p.name, "key": p.key.hex(), "added": p.added} for p in found]
            typer.echo(json.dumps(rows))
            return
        for pinned in found:
            typer.echo(f"{pinned.name} {pinned.key.hex()}")


@app.command("remove", epilog="Example: ragaudit verifier provider remove acme")
def remove(
    name: Annotated[str, typer.Argument(help="The provider.")],
    settings: SettingsPath = DEFAULT_SETTINGS,
) -> None:
    """Forget a provider's key; its windows stay."""
    with failing(), _database(settings) as database:
        providers.remove(database, name)
        typer.echo(f"removed {name}")


@contextmanager
def _database(path: Path) -> Iterator[Database]:
    settings = settings_files.load(path)
    settings_files.make_data_folder(settings)
    # Without the fence: the running service holds it, and these commands attest nothing.
    database = Database(settings.database_url, system_clock)
    try:
        yield database
    finally:
        database.close()
