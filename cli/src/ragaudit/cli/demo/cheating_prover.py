"""The prover service with the parts of a cheat: `python -m ragaudit.cli.demo.cheating_prover`.

Takes the cheat's name and the prover's settings file; everything else is the honest service.
"""

import sys
from pathlib import Path

from ragaudit.cli.demo.cheats import find
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.prover.app import create_app
from ragaudit.prover.service import Components
from ragaudit.prover.settings import load_settings
from ragaudit.serving import server

__all__ = ["main"]


def main() -> None:
    """Serve until told to stop."""
    name, settings_file = sys.argv[1:]
    cheat = find(name)
    if cheat.components is None:
        raise UnsupportedError("no service can stage this cheat", where=name)
    settings = load_settings(Path(settings_file))
    make = cheat.components
    server.run(
        lambda: create_app(settings, components=make(Components())),
        host=settings.server.host,
        port=settings.server.port,
    )


if __name__ == "__main__":
    main()
