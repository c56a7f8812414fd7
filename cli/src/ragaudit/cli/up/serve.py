"""``python -m ragaudit.cli.up.serve SERVICE SETTINGS CLOCK``: a service on a shared clock.

What it needs is loaded first. Then it waits for a line on its standard input, before which
settings and clock need not be there: `ragaudit up` sets both parties up meanwhile.
"""

import sys
from pathlib import Path

from ragaudit.cli.up.run import SharedClock
from ragaudit.encoding.commands import failing, loading
from ragaudit.serving import server
from ragaudit.serving.clock import UNTIL_CONFIRMED, UNTIL_IT_STAYS


def main(service: str, settings: Path, clock: Path) -> None:
    """Run a service until it is told to stop.

    Args:
        service: ``prover`` or ``verifier``.
        settings: its YAML file.
        clock: the file of the shared clock.

    Raises:
        RagauditError: as the service raises at its start.
    """
    if service == "verifier":
        _verifier(settings, clock)
    else:
        _prover(settings, clock)


def _told() -> bool:
    """Wait for the line; False if nobody will write it."""
    return bool(sys.stdin.readline())


def _verifier(path: Path, clock: Path) -> None:
    with loading():
        from ragaudit.verifier import settings as verifier_settings
        from ragaudit.verifier.service.app import create_app

    if not _told():
        return
    settings = verifier_settings.load(path)
    shared = SharedClock(clock)
    server.run(
        lambda: create_app(settings, clock=shared.even(UNTIL_IT_STAYS)),
        host=settings.listen.host,
        port=settings.listen.port,
    )


def _prover(path: Path, clock: Path) -> None:
    with loading():
        from ragaudit.prover.http.app import create_app
        from ragaudit.prover.service import Components
        from ragaudit.prover.settings import load_settings

    if not _told():
        return
    settings = load_settings(path)
    components = Components(clock=SharedClock(clock).even(UNTIL_CONFIRMED))
    server.run(
        lambda: create_app(settings, components=components),
        host=settings.server.host,
        port=settings.server.port,
        operation=settings.operation,
        trusted_proxies=settings.server.trusted_proxies,
    )


if __name__ == "__main__":
    with failing():
        main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
