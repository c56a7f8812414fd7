"""Options that several commands of the client have."""

from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.options import public_key
from ragaudit.encoding.signing import PublicKey

SavedWindow = Annotated[
    Path | None, typer.Option("--window", help="Saved reply of GET /v1/windows/{window}.")
]
Prover = Annotated[str | None, typer.Option("--prover", help="URL: ask this provider for it.")]
PinnedPolicy = Annotated[
    Path | None, typer.Option("--policy", help="Pin: the policy that you agreed to.")
]
PinnedKey = Annotated[
    PublicKey | None,
    typer.Option(
        "--verifier-key",
        parser=public_key,
        metavar="HEX",
        help="Pin: the verifier's key (keys.verifier of the policy).",
    ),
]
AllowUnpinned = Annotated[
    bool,
    typer.Option(
        "--allow-unpinned", help="Go without a pin: trust whichever server shows the window."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
