"""Read and check a file with an answer in words, as `offline` does a receipt file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragaudit.client.checker import CoreOperations
from ragaudit.client.offline import Facts, pinning
from ragaudit.client.results import CheckedAnswer
from ragaudit.client.window import Window
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.generated import GeneratedFile, GeneratedReceipt
from ragaudit.ledger.messages.generated_check import check_generated_file

__all__ = ["check", "is_words", "public_half"]


def is_words(value: Mapping[str, Any]) -> bool:
    """Return whether a file says that it holds an answer in words, or its public half alone.

    Args:
        value: the file's JSON.
    """
    return value.get("format") in (GeneratedFile.FORMAT, GeneratedReceipt.FORMAT)


def public_half(value: Mapping[str, Any], path: Path) -> GeneratedReceipt:
    """Return the public half of such a file, or of a file that is a public half alone.

    Args:
        value: the file's JSON.
        path: of the file, for the error.

    Raises:
        MalformedError: neither of the two.
    """
    try:
        return GeneratedReceipt.from_json(value.get("public", value))
    except MalformedError as error:
        where = f"{path}: {error.where}"
        raise MalformedError(error.what, where=where, expected=error.expected) from error


def check(
    value: Mapping[str, Any], window: Window, facts: Facts, path: Path | None = None
) -> CheckedAnswer:
    """Run the steps on a file with an answer in words; as `offline.check`.

    Args:
        value: the file's JSON.
        window: the window that it names.
        facts: what is known beside it; a step without what it needs is "not done".
        path: of the file, if it is one.

    Raises:
        RejectedError: the provider signed something false.
        MalformedError: not such a file.
    """
    file = GeneratedFile.from_json(value)
    steps = check_generated_file(
        file, window.view, CoreOperations(),
        anchor=facts.chain, account=facts.view(window), promise=facts.promise,
        embed=facts.embed(window),
    )  # fmt: skip
    return CheckedAnswer(file, [pinning(window), *steps], path)
