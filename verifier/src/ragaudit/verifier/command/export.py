"""``ragaudit verifier export``: a verdict as documents that other tools read."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.encoding.commands import failing, of_file
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PrivateKey, PublicKey
from ragaudit.ledger.messages.audit_findings import AuditFinding
from ragaudit.ledger.messages.verdict import Verdict
from ragaudit.ledger.messages.verification_result import VerificationResult
from ragaudit.verifier import keys as key_files
from ragaudit.verifier import settings as settings_files
from ragaudit.verifier.command.options import VerdictKeyIfAny

__all__ = ["export"]


class Format(StrEnum):
    """What a verdict can be written as (docs/spec/10-verdict.md §10.7)."""

    SVR = "svr"
    OSCAL = "oscal"
    JSONL = "jsonl"


def export(
    verdict: Annotated[Path, typer.Argument(help="The signed verdict: verdict.json of a bundle.")],
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="svr: in-toto simple verification result; oscal: assessment results; "
            "jsonl: a finding a line.",
        ),
    ],
    verdict_key: VerdictKeyIfAny = None,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings", "-s", help="Settings of the verifier, instead of --verdict-key."
        ),
    ] = None,
    sign: Annotated[
        bool, typer.Option("--sign", help="svr: sign it, with the verdict key of --settings.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; standard output if none.")
    ] = None,
) -> None:
    """Write a verdict as a document for other tools; it says no more than the verdict does.

    The signature is verified first. The same verdict gives the same bytes. Only an svr can be
    signed; the other two, and an svr without --sign, are not.
    """
    with failing():
        if sign and (form is not Format.SVR or settings is None):
            raise MalformedError(
                "nothing to sign, or to sign with", where="--sign", expected="svr, and --settings"
            )
        key = None if settings is None else _own_key(settings)
        found = _verified(verdict, _pinned(verdict_key, key))
        data = _document(found, form, key if sign else None)
        if output is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            _write(output, data)


def _own_key(settings: Path) -> PrivateKey:
    own = settings_files.load(settings)
    return key_files.load(own.secrets, own.name, own.arbiter).verdict


def _verified(path: Path, public: PublicKey) -> Verdict:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MalformedError("cannot be read", where=str(path)) from error
    with of_file(path):
        return Verdict.verify(data, public)


def _pinned(given: PublicKey | None, own: PrivateKey | None) -> PublicKey:
    """The key that must have signed: of the option, or else of the settings."""
    if given is not None:
        return given
    if own is not None:
        return own.public
    raise MalformedError(
        "nothing says whose verdict it must be", expected="--verdict-key or --settings"
    )


def _document(verdict: Verdict, form: Format, key: PrivateKey | None) -> bytes:
    match form:
        case Format.SVR:
            result = VerificationResult.of(verdict)
            return (result.encode() if key is None else result.issue(key)) + b"\n"
        case Format.OSCAL:
            # The report's words load the accounting libraries, which take seconds.
            from ragaudit.verifier.report.oscal import assessment_results  # noqa: PLC0415

            return assessment_results(verdict) + b"\n"
        case Format.JSONL:
            return b"".join(finding.encode() for finding in AuditFinding.of(verdict))


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise MalformedError("cannot be written", where=str(path)) from error
