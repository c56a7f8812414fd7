"""``ragaudit prover tenant``: works on the database, whether the service runs or not."""

from contextlib import closing
from typing import Annotated

import typer
from ragaudit.encoding.commands import failing
from ragaudit.prover.command.console import JsonOption, SettingsOption, emit
from ragaudit.prover.command.operator_commands import DEFAULT_SETTINGS
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store.accounts import Accounts
from ragaudit.prover.store.database import Store
from ragaudit.prover.store.owners import Owners

app = typer.Typer(
    help="Owners of the tenants' documents.\n\nExample: ragaudit prover tenant key shop",
    no_args_is_help=True,
)


@app.callback()
def group() -> None:
    """Keep ``key`` a command of its own, also while it is the only one."""


@app.command("key")
def key(
    tenant: str,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Revoke the key; no new one is made.")
    ] = False,
    settings: SettingsOption = DEFAULT_SETTINGS,
    as_json: JsonOption = False,
) -> None:
    """Give the owner of a tenant's documents an API key, and print it, this one time.

    With it the owner sees which documents the index holds, and nothing else. Where there was a key
    before, that one is dead at once; with --revoke no key is left.

    Example: ragaudit prover tenant key shop --json
    """
    with failing(as_json):
        options = load_settings(settings)
        with closing(Store.open(options.store.url)) as store:
            owners = Owners(store)
            if revoke:
                owners.revoke_key(tenant)
                shown = {"tenant": tenant, "revoked": True}
            else:
                Accounts(store).ensure_tenants(options.backend.tenants)
                shown = {"tenant": tenant, "key": owners.give_key(tenant)}
        emit(shown, as_json)
