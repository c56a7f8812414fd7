"""Options by which commands are given a window and its pins, and the window that they name."""

from pathlib import Path
from typing import Annotated, Any

import typer
from ragaudit.client import blocking, offline
from ragaudit.client.window import Pins, Window, authenticate
from ragaudit.encoding.errors import InvalidArgumentError
from ragaudit.encoding.options import public_key
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.messages.shown import ShownWindow

__all__ = [
    "AllowUnpinned",
    "AsJson",
    "PinnedKey",
    "PinnedPolicy",
    "Prover",
    "SavedWindow",
    "load",
    "load_named",
    "pins_of",
]

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
    typer.Option("--allow-unpinned", help="Go without a pin: believe whoever shows the window."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def pins_of(policy: Path | None, verifier_key: PublicKey | None, allow_unpinned: bool) -> Pins:
    """Return what the options pin.

    Args:
        policy: file with the policy that the account agreed to.
        verifier_key: of the verifier.
        allow_unpinned: whether to go without.

    Raises:
        MalformedError: nothing is pinned, or not a policy.
    """
    pins = Pins(
        verifier_key,
        None if policy is None else offline.read_policy_digest(policy),
    )
    expected = "--verifier-key or --policy, or --allow-unpinned"
    return pins.demanded(expected, allow_unpinned=allow_unpinned)


def load(
    value: dict[str, Any], path: Path, window: Path | None, prover: str | None, pins: Pins
) -> Window:
    """Return the window that a receipt names, as `load_named`.

    Args:
        value: the receipt file's JSON.
        path: of the file, for errors.
        window, prover, pins: as of `load_named`.
    """
    return load_named(offline.public_half(value, path).window, window, prover, pins)


def load_named(name: str, window: Path | None, prover: str | None, pins: Pins) -> Window:
    """Return a window, from a file or from the provider.

    Args:
        name: of the window, for the provider.
        window: file with the provider's reply.
        prover: URL of the provider.
        pins: what is known from elsewhere.

    Raises:
        InvalidArgumentError: both sources, or none.
        RagauditError: as `authenticate`.
    """
    # Not both: which of two replies counts would be a guess.
    if (window is None) == (prover is None):
        raise InvalidArgumentError(
            "one source of the window is needed", expected="--window or --prover"
        )
    if window is not None:
        return offline.read_window(window, pins)
    return authenticate(ShownWindow.from_json(blocking.window(str(prover), name)), pins)
