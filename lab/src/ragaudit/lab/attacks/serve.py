"""A cheating prover service over HTTP.

    python -m ragaudit.lab.attacks.serve NAME --config prover.yaml
    python -m ragaudit.lab.attacks.serve list

The service is `ragaudit prover serve` with one cheat's components; everything else is honest.
"""

from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.commands import failing
from ragaudit.encoding.errors import UnsupportedError
from ragaudit.lab.attacks.catalogue import CATALOGUE, find
from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.prover.http.app import create_app
from ragaudit.prover.service import Components
from ragaudit.prover.settings import load_settings
from ragaudit.serving import server


def service_cheat(name: str) -> ServiceCheat:
    """Return the cheat called ``name``.

    Args:
        name: of the catalogue.

    Raises:
        UnsupportedError: there is none, or no service can stage it.
    """
    found = find(name)
    if not isinstance(found, ServiceCheat):
        raise UnsupportedError(
            "no service stages this cheat", where=name, expected=f"ragaudit attack run {name}"
        )
    return found


def show_list() -> None:
    """Print every cheat with its family, its staging and the checks that catch it."""
    width = max(len(each.name) for each in CATALOGUE)
    for each in CATALOGUE:
        caught = f"{each.result} by {', '.join(each.checks) or 'the service'}"
        typer.echo(f"{each.family:<12} {each.name:<{width}} {each.staging:<13} {caught}")


def main(
    name: Annotated[str, typer.Argument(help="A cheat's name, or 'list'.")],
    config: Annotated[Path, typer.Option(help="The prover's settings file.")] = Path("prover.yaml"),
) -> None:
    """Serve with the components of a cheat until told to stop."""
    if name == "list":
        show_list()
        return
    with failing():
        cheat = service_cheat(name)
        settings = load_settings(config)
        server.run(
            lambda: create_app(settings, components=cheat.components(Components())),
            host=settings.server.host,
            port=settings.server.port,
        )


if __name__ == "__main__":
    typer.run(main)
