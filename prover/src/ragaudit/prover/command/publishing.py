"""``ragaudit prover window publish``: a window's log as static files."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.commands import failing
from ragaudit.encoding.text import b64_encode
from ragaudit.ledger.log.published_files import publish
from ragaudit.ledger.messages.policy import Policy
from ragaudit.prover.command.console import JsonOption, SettingsOption, emit
from ragaudit.prover.command.operator_commands import DEFAULT_SETTINGS
from ragaudit.prover.lifecycle.committing import read_log
from ragaudit.prover.settings import load_settings
from ragaudit.prover.store.database import Store
from ragaudit.prover.window.windows import Windows

__all__ = ["publish_window"]


def publish_window(
    window: str,
    folder: Annotated[Path, typer.Argument(help="Folder for this window's log alone.")],
    settings: SettingsOption = DEFAULT_SETTINGS,
    as_json: JsonOption = False,
) -> None:
    """Write what the last cosigned checkpoint covers as static files (C2SP tlog-tiles).

    Beside the running service, as often as wanted: only what is new is written, `checkpoint` last.

    Example: ragaudit prover window publish 2026-11 /srv/www/logs/2026-11
    """
    with failing(as_json):
        with closing(Store.open(load_settings(settings).store.url)) as store:
            policy = Policy.parse(Windows(store).get(window).policy)
            head = publish(read_log(store.engine, policy).checkpoints, folder)
        emit({"window": window, "size": head.size, "root": b64_encode(head.root_hash)}, as_json)
