"""``ragaudit prover account`` and ``tenant``: work on the database, with the service or without."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from ragaudit.encoding.commands import failing, new_file
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.options import public_key
from ragaudit.encoding.signing import PublicKey
from ragaudit.encoding.text import rfc3339
from ragaudit.prover.command.operator_commands import (
    DEFAULT_SETTINGS,
    JsonOption,
    SettingsOption,
    emit,
    emit_rows,
    progress_bar,
)

if TYPE_CHECKING:
    from ragaudit.prover.store.database import Store

DisputeKeyOption = Annotated[
    PublicKey | None,
    typer.Option("--dispute-key", parser=public_key, metavar="HEX", help="Its public dispute key."),
]
UserOption = Annotated[
    str | None, typer.Option("--user", help="An end user whom the account names.")
]
accounts = typer.Typer(
    help="Accounts of the tenants.\n\nExample: ragaudit prover account add shop ada",
    no_args_is_help=True,
)


@accounts.command("add")
def add(
    tenant: str,
    name: str,
    user: UserOption = None,
    dispute_key: DisputeKeyOption = None,
    settings: SettingsOption = DEFAULT_SETTINGS,
    as_json: JsonOption = False,
) -> None:
    """Create an account and print its API key, this one time; or, with --user, an end user of one.

    Whoever uses the account makes its dispute key (`ragaudit key make`) and keeps the private key.
    Without one nobody can dispute what the account is answered, unless it registers by itself. End
    users have that of the account which names them.

    Example: ragaudit prover account add shop ada --dispute-key 3b6a... --json
    """
    from ragaudit.prover.settings import load_settings
    from ragaudit.prover.store.accounts import Accounts

    with failing(as_json):
        public = None if dispute_key is None else dispute_key.raw
        if public is not None and user is not None:
            raise InvalidArgumentError(
                "an end user has that of the account", where="--dispute-key", expected="no --user"
            )
        with _store(settings) as store:
            accounts = Accounts(store)
            accounts.ensure_tenants(load_settings(settings).backend.tenants)
            if user is not None:
                shown = accounts.add_end_user(name, user, tenant=tenant).to_json()
            else:
                shown = {"tenant": tenant, "name": name, "key": accounts.add(tenant, name, public)}
        emit(shown, as_json)


@accounts.command("rotate-key")
def rotate_key(
    name: str, settings: SettingsOption = DEFAULT_SETTINGS, as_json: JsonOption = False
) -> None:
    """Replace an account's API key; the old one is dead at once.

    Example: ragaudit prover account rotate-key ada
    """
    from ragaudit.prover.store.accounts import Accounts

    with failing(as_json):
        with _store(settings) as store:
            key = Accounts(store).rotate_key(name)
        emit({"name": name, "key": key}, as_json)


@accounts.command("dispute-key")
def replace_dispute_key(
    name: str,
    key: Annotated[PublicKey, typer.Argument(parser=public_key, metavar="HEX")],
    settings: SettingsOption = DEFAULT_SETTINGS,
    as_json: JsonOption = False,
) -> None:
    """Keep an account's public dispute key in place of any other, for windows to come.

    Windows that have registered the account keep the key that is in their log.

    Example: ragaudit prover account dispute-key ada 3b6a...
    """
    from ragaudit.prover.store.accounts import Accounts

    with failing(as_json):
        with _store(settings) as store:
            accounts = Accounts(store)
            accounts.keep_dispute_key(accounts.named(name), key.raw, over=True)
        emit({"name": name, "dispute_key": key.raw.hex()}, as_json)


@accounts.command("list")
def list_accounts(settings: SettingsOption = DEFAULT_SETTINGS, as_json: JsonOption = False) -> None:
    """List the accounts, without their keys, and the end users whom they name.

    Example: ragaudit prover account list
    """
    from ragaudit.prover.store.accounts import Accounts

    with failing(as_json):
        with _store(settings) as store:
            rows = [row.to_json() for row in Accounts(store).all()]
        # A table has a place for what some rows lack.
        lacking = {"user": "", "dispute_key": ""}
        emit_rows(rows if as_json else [{**lacking, **row} for row in rows], as_json)


@accounts.command("export")
def export(
    name: str,
    reader: Annotated[str, typer.Option(help="Who opens it: a name, kept with the reason.")],
    reason: Annotated[str, typer.Option(help="Why it is opened: one line, kept for good.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write, mode 0600.")],
    window: Annotated[
        list[str] | None, typer.Option(help="Only this window (repeatable); all if unset.")
    ] = None,
    user: UserOption = None,
    settings: SettingsOption = DEFAULT_SETTINGS,
    as_json: JsonOption = False,
) -> None:
    """Write everything that is stored of an account; who did so, and why, is recorded.

    A line of JSON each: log entries, questions and answers of both channels, promises. What it does
    not have is what no account is told: noise, seeds, blindings, which rows paid for an answer.

    Example: ragaudit prover account export ada --reader 'B. Ito' --reason 'request of the account'
    --output ada.jsonl
    """
    from ragaudit.ledger.messages.bodies import AccessBody
    from ragaudit.prover.keys import load_key
    from ragaudit.prover.settings import load_settings
    from ragaudit.serving.clock import UNTIL_CONFIRMED, EvenClock

    with failing(as_json):
        # The records' formats load numpy, which the other commands do without.
        from ragaudit.prover.lifecycle.retention import Export

        said = AccessBody.from_json({"reader": reader, "reason": reason})
        key = load_key(load_settings(settings).keys.provider_file)
        with _store(settings) as store, progress_bar(as_json, f"writing what there is of {name}"):
            exporter = Export(store, key, EvenClock(UNTIL_CONFIRMED))
            # Made first: an access of what then cannot be written would be one for nothing.
            with new_file(output) as file:
                written = exporter.write(name, window or (), said, file, user=user)
        emit({"name": name, "user": user, "windows": written, "file": str(output)}, as_json)


@accounts.command("accesses")
def accesses(
    window: str, settings: SettingsOption = DEFAULT_SETTINGS, as_json: JsonOption = False
) -> None:
    """Show who exported records of a window's accounts, when and why; --json: the signed list.

    Example: ragaudit prover account accesses 2026-11 --json
    """
    from ragaudit.prover.window.windows import Windows

    with failing(as_json):
        from ragaudit.prover.lifecycle.retention import accesses_of

        with _store(settings) as store, store.read() as connection:
            Windows(store).get(window, connection)
            found = accesses_of(connection, window)
        if as_json:
            emit_rows([access.to_json() for access in found], as_json)
            return
        emit_rows(
            [
                {"time": rfc3339(each.time), "what": each.what, "reader": each.reader,
                 "reason": each.reason}
                for each in found
            ],
            as_json,
        )  # fmt: skip


def _store(settings: Path) -> "closing[Store]":
    from ragaudit.prover.settings import load_settings
    from ragaudit.prover.store.database import Store

    return closing(Store.open(load_settings(settings).store.url))


tenants = typer.Typer(
    help="Owners of the tenants' documents.\n\nExample: ragaudit prover tenant key shop",
    no_args_is_help=True,
)


@tenants.callback()
def _group_of_key() -> None:
    """Keep ``key`` a command of its own, also while it is the only one."""


@tenants.command("key")
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
    from ragaudit.prover.settings import load_settings
    from ragaudit.prover.store.accounts import Accounts, Owners
    from ragaudit.prover.store.database import Store

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
