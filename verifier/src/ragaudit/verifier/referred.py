"""The test results that a verdict refers to, in a re-check (docs/spec 10.11)."""

from collections.abc import Mapping

from ragaudit.encoding.errors import RagauditError
from ragaudit.ledger.messages.signed_results import References, references_of


def compare(
    signed: References | None,
    listed: References | None,
    files: Mapping[str, bytes],
    policy: bytes,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (differences, notes) about the references of a verdict.

    Results are no part of the audit: one whose file is not at hand leaves nothing of it open.

    Args:
        signed: of the verdict.
        listed: of the evidence.
        files: results that are at hand, by the names of the references.
        policy: the item `public/policy.json`.
    """
    if signed != listed:
        return ("test_results: the verdict refers to others than the evidence lists",), ()
    differences, notes = [], []
    for reference in references_of(signed):
        name = f"test result {reference.name}"
        if reference.name not in files:
            notes.append(f"{name}: not looked at, no file has the digest {reference.digest.hex()}")
            continue
        try:
            reference.check(files[reference.name], policy)
        except RagauditError as error:
            differences.append(f"{name}: {error}")
        else:
            notes.append(f"{name}: the file is the one that the verdict refers to")
    return tuple(differences), tuple(notes)
