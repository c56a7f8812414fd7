"""Options that several commands of the verifier have."""

from pathlib import Path
from typing import Annotated

import typer
from ragaudit.verifier.settings import SETTINGS_VARIABLE

SETTINGS_FILE = "verifier.yaml"
DEFAULT_SETTINGS = Path(SETTINGS_FILE)

SettingsPath = Annotated[
    Path,
    typer.Option("--settings", "-s", envvar=SETTINGS_VARIABLE, help="Settings file."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
