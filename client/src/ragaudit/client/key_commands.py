"""`ragaudit receipt key`: the dispute key of an account that somebody else registers (spec 8.6)."""

import json
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.client import offline
from ragaudit.client.blocking import run
from ragaudit.client.command_window import AllowUnpinned, AsJson, PinnedKey, pins_of
from ragaudit.client.transport import Service
from ragaudit.client.window import (
    SERVED,
    AccountState,
    Pins,
    Window,
    authenticate,
    check_entry,
)
from ragaudit.encoding.commands import ExitCode, failing
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.shown import WindowList

__all__ = ["add_to"]

_EXAMPLES = """Example:

  RAGAUDIT_API_KEY=... ragaudit receipt key dispute.key --prover https://rag.example
  --verifier-key 3b6a...

Exit status: 0 the provider keeps the public half, and no window that is served registered the
account with another or none; 1 something shown is false; 2 an input that is unusable; 3 the
provider does not answer; 4 the provider has another key of the account; 5 it keeps the key, and a
window that is served registered the account without it: ask nothing there that you could not
dispute."""

_KEPT = "registered with this key"
_UNPROVEN = "registered with this key; no cosigned checkpoint has it yet"
_LATER = "not registered yet: it will be with this key"
_NONE = "registered WITHOUT a dispute key: nobody could dispute the answers"
_OTHER = "registered with ANOTHER dispute key: somebody else could dispute, you cannot"


def add_to(app: typer.Typer) -> None:
    """Add the command to a group.

    Args:
        app: `ragaudit receipt`.
    """
    app.command("key", epilog=_EXAMPLES)(keep)


def keep(
    key: Annotated[Path, typer.Argument(help="The dispute key, made by `ragaudit key make`.")],
    prover: Annotated[str, typer.Option("--prover", help="URL of the provider.")],
    api_key: Annotated[
        str,
        typer.Option(envvar="RAGAUDIT_API_KEY", help="The account's; better in the environment."),
    ],
    verifier_key: PinnedKey = None,
    allow_unpinned: AllowUnpinned = False,
    as_json: AsJson = False,
) -> None:
    """Give the provider the public half of the account's dispute key, and see what became of it.

    For an account that its application, or the provider, registers in each window: whoever holds
    the private half can then dispute its answers. Ask again once a window is countersigned, before
    the first question: what is shown is what the window's log holds.
    """
    with failing(as_json):
        public = offline.read_key(key).public
        pins = pins_of(None, verifier_key, allow_unpinned)
        found = run(_kept(prover, api_key, public, pins))
    if as_json:
        typer.echo(json.dumps({"dispute_key": public.raw.hex(), "windows": found}))
    else:
        typer.echo(f"the provider keeps {public.raw.hex()}")
        for window, outcome in found.items():
            typer.echo(f"{window}: {outcome}")
    if {_NONE, _OTHER} & set(found.values()):
        raise typer.Exit(int(ExitCode.INCOMPLETE))


async def _kept(prover: str, api_key: str, public: PublicKey, pins: Pins) -> dict[str, str]:
    """Return what each window that is served shows of the account, by name."""
    service = Service(prover, headers={"Authorization": f"Bearer {api_key}"})
    try:
        await service.request("PUT", "/v1/dispute-key", {"dispute_key": public.raw.hex()})
        windows = WindowList.from_json(await service.get("/v1/windows")).windows
        served = [authenticate(each, pins) for each in windows if each.state in SERVED]
        shown = [await service.get(f"/v1/windows/{each.name}/account") for each in served]
    finally:
        await service.aclose()
    accounts = map(AccountState.from_json, shown)
    pairs = zip(served, accounts, strict=True)
    return {window.name: _outcome(window, account, public) for window, account in pairs}


def _outcome(window: Window, account: AccountState, public: PublicKey) -> str:
    if account.slot is None or account.registration is None:
        return _LATER
    if account.dispute_key is None:
        return _NONE
    if account.dispute_key != public.raw:
        return _OTHER
    # What is shown beside the entry binds nobody: the log has to hold this key.
    proven = check_entry(account.registration, window, account.expected(window))
    return _KEPT if proven else _UNPROVEN
