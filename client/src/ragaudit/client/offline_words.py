"""Read and check a file with an answer in words, as `offline` does a receipt file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragaudit.client.core_operations import CoreOperations
from ragaudit.client.offline import Facts, parsed, pinning
from ragaudit.client.results import CheckedAnswer
from ragaudit.client.window import Window
from ragaudit.ledger.messages.generated import GeneratedFile
from ragaudit.ledger.messages.generated_check import check_generated_file
from ragaudit.ledger.messages.receipt_check import check_quorum

__all__ = ["check"]


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
        MalformedError: not such a file, and not because of the provider.
    """
    file = parsed(GeneratedFile, value, window.view.policy)
    steps = check_generated_file(
        file, window.view, CoreOperations(),
        anchor=facts.chain, account=facts.view(window), promise=facts.promise,
        embed=facts.embed(window),
    )  # fmt: skip
    quorum = check_quorum(file.public, window.view.policy)
    return CheckedAnswer(file, [pinning(window), *steps, *quorum], path)
