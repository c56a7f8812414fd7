"""``ragaudit verifier settings-schema``."""

import typer
from ragaudit.verifier.settings import Settings

__all__ = ["print_schema"]


def print_schema() -> None:
    """Print the JSON schema of the settings file."""
    typer.echo(Settings.schema_text())
