"""Options by which an owner's commands are given a window, and the API key to ask with."""

from typing import Annotated

import typer

__all__ = ["AnyProver", "OwnerApiKey", "WindowName"]

AnyProver = Annotated[str, typer.Option("--prover", help="URL of the provider.")]
WindowName = Annotated[str, typer.Option("--window-name", help="Name of the window.")]
OwnerApiKey = Annotated[
    str,
    typer.Option(
        "--api-key", envvar="RAGAUDIT_OWNER_API_KEY",
        help="The owner's; better in the environment.",
    ),
]  # fmt: skip
