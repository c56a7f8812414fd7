"""Check a file with an answer in words without the provider, as `offline` does a receipt file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragaudit.client.checker import CoreOperations, embedding
from ragaudit.client.offline import Facts, account_view, pinning
from ragaudit.client.results import CheckedAnswer
from ragaudit.client.window import Window
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.generated import GeneratedFile
from ragaudit.ledger.messages.generated_check import check_generated_file
from ragaudit.ledger.messages.receipt_check import AccountView

__all__ = ["check", "is_words", "window_name"]


def is_words(value: Mapping[str, Any]) -> bool:
    """Return whether a file says that it holds an answer in words.

    Args:
        value: the file's JSON.
    """
    return value.get("format") == GeneratedFile.FORMAT


def window_name(value: Mapping[str, Any], path: Path) -> str:
    """Return the name of the window in which a question was answered.

    Args:
        value: the file's JSON.
        path: of the file, for the error.

    Raises:
        MalformedError: not such a file.
    """
    try:
        return GeneratedFile.from_json(value).public.charged.window
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
    # An empty view compares nothing: the steps that need the account are "not done".
    anchor, view = facts.anchor, AccountView()
    if facts.account is not None:
        anchor, view = facts.account.anchor, account_view(facts.account, window)
    embed = None if facts.embedder is None else embedding(facts.embedder, window.view.policy)
    steps = check_generated_file(
        file, window.view, CoreOperations(),
        anchor=anchor, account=view, promise=facts.promise, embed=embed,
    )  # fmt: skip
    return CheckedAnswer(file, [pinning(window), *steps], path)
