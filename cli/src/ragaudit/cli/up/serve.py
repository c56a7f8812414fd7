"""``python -m ragaudit.cli.up.serve SERVICE SETTINGS CLOCK``: a service on a shared clock."""

import sys
from pathlib import Path

from ragaudit.cli.up.run import SharedClock
from ragaudit.encoding.commands import failing
from ragaudit.prover.http.app import create_app as create_prover
from ragaudit.prover.service import Components
from ragaudit.prover.settings import load_settings
from ragaudit.serving import server
from ragaudit.serving.clock import UNTIL_CONFIRMED, UNTIL_IT_STAYS
from ragaudit.verifier import settings as verifier_settings
from ragaudit.verifier.service.app import create_app as create_verifier


def main(service: str, settings: Path, clock: Path) -> None:
    """Run a service until it is told to stop.

    Args:
        service: ``prover`` or ``verifier``.
        settings: its YAML file.
        clock: the file of the shared clock.

    Raises:
        RagauditError: as the service raises at its start.
    """
    shared = SharedClock(clock)
    if service == "verifier":
        verifier = verifier_settings.load(settings)
        server.run(
            lambda: create_verifier(verifier, clock=shared.even(UNTIL_IT_STAYS)),
            host=verifier.listen.host,
            port=verifier.listen.port,
        )
        return
    prover = load_settings(settings)
    components = Components(clock=shared.even(UNTIL_CONFIRMED))
    server.run(
        lambda: create_prover(prover, components=components),
        host=prover.server.host,
        port=prover.server.port,
        operation=prover.operation,
        trusted_proxies=prover.server.trusted_proxies,
    )


if __name__ == "__main__":
    with failing():
        main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
