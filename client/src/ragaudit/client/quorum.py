"""Which cosigners stand behind a receipt or a checkpoint, by a trust policy of the reader's own."""

import json
from pathlib import Path
from typing import Annotated

import typer
from ragaudit.client import offline
from ragaudit.encoding.commands import ExitCode, failing
from ragaudit.encoding.errors import MalformedError, UnavailableError
from ragaudit.ledger.errors import MalformedTrustPolicy, ReceiptRejected
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.cosignatures import CosignerPolicy
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.log.tlog_policy import QuorumFinding, TrustPolicy
from ragaudit.ledger.log.tlog_proof import TlogProof
from ragaudit.ledger.messages.public_halves import PublicHalf

QUORUM_EXAMPLES = """Examples:

  ragaudit receipt quorum answer.json --trust cosigners.policy --log-key 'rag.example/...+5c...'

  ragaudit receipt quorum checkpoint --trust cosigners.policy

Exit status: 0 the quorum is reached, or none is asked; 1 a signature or the proof is false;
2 a line of the policy is malformed, named by its number; 3 the receipt has no proof yet;
5 the quorum is not reached."""


def quorum(
    file: Annotated[Path, typer.Argument(help="Receipt file, public half, or checkpoint.")],
    trust: Annotated[Path, typer.Option("--trust", help="Your tlog-policy file.")],
    log_key: Annotated[
        str | None, typer.Option("--log-key", help="The log's vkey, if your policy lists no log.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say which cosigners of your own list stand behind a receipt, and whether they suffice."""
    with failing(as_json):
        key = None if log_key is None else VerifierKey.parse(log_key)
        finding = read_finding(file, read_trust(trust), key)
    if as_json:
        typer.echo(json.dumps(finding.to_json()))
    else:
        typer.echo(str(finding))
    if not finding.reached:
        raise typer.Exit(int(ExitCode.INCOMPLETE))


def read_trust(path: Path) -> TrustPolicy:
    """Return the trust policy at ``path``, a tlog-policy file.

    Args:
        path: of the reader's own file.

    Raises:
        MalformedTrustPolicy: a line that is not of the format.
    """
    try:
        return TrustPolicy.parse(offline.read_bytes(path))
    except MalformedTrustPolicy as error:
        raise MalformedTrustPolicy(
            error.what, where=f"{path}, {error.where}", expected=error.expected
        ) from error


def read_finding(path: Path, trust: TrustPolicy, log_key: VerifierKey | None) -> QuorumFinding:
    """Return who cosigned the checkpoint of a receipt, or a checkpoint alone.

    Of a receipt the inclusion proof is checked too: the cosigned tree holds its record. An answer
    in words has two, of its charge and of itself: of one without the quorum if there is one.

    Args:
        path: of a receipt file, of its public half, or of a checkpoint note.
        trust: the reader's.
        log_key: of the log that is meant, where ``trust`` lists none.

    Raises:
        MalformedError: neither of the two kinds of file.
        UnavailableError: no inclusion proof yet.
        ReceiptRejected: a proof that is none, or one of another place.
        NoteRejected: an unknown log, or a line of a known key that does not verify.
        ProofRejected: the tree does not hold the record.
    """
    data = offline.read_bytes(path)
    if not data.startswith(b"{"):
        return trust.judge(data, log_key)
    public = offline.public_half(offline.read_file(path), path)
    try:
        notes = [proof.checkpoint for proof in read_proofs(public, path)]
    except MalformedError as error:
        raise ReceiptRejected(error.what, where=str(path), expected=error.expected) from error
    findings = [trust.judge(note, log_key) for note in notes]
    # The log that signed is known now; by its key the leaf is looked up in the tree.
    key = log_key or next(
        log.key for log in trust.logs if log.key.name == findings[0].signed.checkpoint.origin
    )
    public.checkpoints(key, CosignerPolicy(trust.keys, 0))
    # Who stands behind an answer in words stands behind its charge, too.
    return next((finding for finding in findings if not finding.reached), findings[-1])


def read_proofs(public: PublicHalf, path: Path) -> list[TlogProof]:
    """Return the inclusion proofs of a receipt, in the order of its entries; none is verified.

    Args:
        public: its public half.
        path: of its file, for errors.

    Raises:
        MalformedError: not a proof.
        UnavailableError: one is outstanding.
    """
    texts = [text for text in public.proofs if text is not None]
    if len(texts) < len(public.proofs):
        raise UnavailableError(
            "the inclusion proof is outstanding",
            where=str(path),
            expected="`ragaudit receipt complete` first",
        )
    return [TlogProof.parse(text.encode()) for text in texts]


def cosignatures(proof: str | None) -> int:
    """Return how many lines beside one stand under a proof's checkpoint; -1 without a proof.

    Args:
        proof: text of a .tlog-proof, whose lines need not be verified.
    """
    if proof is None:
        return -1
    note = TlogProof.parse(proof.encode()).checkpoint
    return len(parse_checkpoint(note).note.signatures) - 1
