"""Options that several commands of the verifier have."""

from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.options import public_key
from ragaudit.encoding.signing import PublicKey

SETTINGS_VARIABLE = "RAGAUDIT_VERIFIER_SETTINGS"
SETTINGS_FILE = "verifier.yaml"
DEFAULT_SETTINGS = Path(SETTINGS_FILE)

SettingsPath = Annotated[
    Path,
    typer.Option("--settings", "-s", envvar=SETTINGS_VARIABLE, help="Settings file."),
]
_VERDICT_KEY = typer.Option(
    parser=public_key, metavar="HEX", help="Public key that must have signed the verdict."
)
VerdictKey = Annotated[PublicKey, _VERDICT_KEY]
VerdictKeyIfAny = Annotated[PublicKey | None, _VERDICT_KEY]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
