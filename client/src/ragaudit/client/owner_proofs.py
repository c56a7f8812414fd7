"""Row proofs and document proofs apart from the service: checked, and said in words (spec 5.16)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from ragaudit.client import offline
from ragaudit.client.checks import CoreOperations, check_pin
from ragaudit.client.owned_documents import far_off
from ragaudit.client.state import read_bytes
from ragaudit.client.window import Pins, Window
from ragaudit.encoding.commands import of_file
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.text import rfc3339
from ragaudit.ledger.errors import CommitmentRejected
from ragaudit.ledger.messages.chains import activation_of
from ragaudit.ledger.messages.columns import canonical_text
from ragaudit.ledger.messages.document_proof import DocumentProof
from ragaudit.ledger.messages.opened_entry import Place
from ragaudit.ledger.messages.policy import Policy
from ragaudit.ledger.messages.receipt_check import Embed, StepResult
from ragaudit.ledger.messages.records import Version
from ragaudit.ledger.messages.row_proofs import RowProof

__all__ = [
    "Erased",
    "Given",
    "OwnerProof",
    "Source",
    "check",
    "check_file",
    "described",
    "is_proof",
    "read",
]

OwnerProof: TypeAlias = "RowProof | DocumentProof"
_KINDS: dict[str, type[RowProof] | type[DocumentProof]] = {
    RowProof.FORMAT: RowProof,
    DocumentProof.FORMAT: DocumentProof,
}
_COMMIT = CoreOperations().commit_rows


@dataclass(frozen=True)
class Given:
    """What whoever checks a row proof has beside it.

    Attributes:
        text: of the document; None if it is not at hand.
        attributes: canonical JSON text of its metadata; None if it is not at hand.
        embed: the committed embedder, where it is.
    """

    text: str | None = field(default=None, repr=False)
    attributes: str | None = field(default=None, repr=False)
    embed: Embed | None = field(default=None, repr=False)

    @classmethod
    def read(cls, text: Path | None, attributes: Path | None, embed: Embed | None) -> "Given":
        """Return what files hold.

        Args:
            text: of UTF-8, exactly the document's.
            attributes: JSON of its metadata, in any spelling; an empty object for none.
            embed: the committed embedder, where it is at hand.

        Raises:
            MalformedError: not such files.
            UnavailableError: one cannot be read.
        """
        said = None
        if attributes is not None:
            value = offline.read_json(attributes)
            if not isinstance(value, dict):
                raise MalformedError("not an object", where=str(attributes), expected="metadata")
            said = canonical_text(value) if value else ""
        return cls(None if text is None else _text(text), said, embed)


@dataclass(frozen=True)
class Erased:
    """What a document proof says, for people.

    Attributes:
        gone: whether the document is not in the last version of the index, or never was.
        since: RFC 3339 time from which on it is gone; None if that is not known, or not so.
        version: from which on it is gone; None if it never was there, or is.
        sentence: all of it.
    """

    gone: bool
    since: str | None
    version: int | None
    sentence: str


@dataclass(frozen=True)
class Source:
    """Where the window of a proof comes from; the policy alone is enough.

    Attributes:
        window: file with the provider's reply.
        prover: URL of the provider.
        policy: file with the policy, which is a pin too.
        pins: what is known from elsewhere.
    """

    window: Path | None
    prover: str | None
    policy: Path | None
    pins: Pins

    def open(self, proof: OwnerProof) -> tuple[Policy, Window | None]:
        """Return the policy of a proof's window, and the window where it is at hand.

        Args:
            proof: names the window.

        Raises:
            RagauditError: as `load_named`; not a policy.
        """
        if self.policy is not None and self.window is None and self.prover is None:
            return offline.read_policy(self.policy), None
        window = offline.load_named(window_of(proof), self.window, self.prover, self.pins)
        return window.view.policy, window


def is_proof(value: Mapping[str, Any]) -> bool:
    """Return whether a file's JSON calls itself a row proof or a document proof."""
    return value.get("format") in _KINDS


def read(path: Path) -> OwnerProof:
    """Return the proof in a file, in its canonical bytes; nothing is verified.

    Args:
        path: of the reply, as it was saved.

    Raises:
        MalformedError: neither of the two.
        UnavailableError: it cannot be read.
    """
    value = offline.read_file(path)
    if not is_proof(value):
        expected = " or ".join(_KINDS)
        raise MalformedError(
            "neither a row proof nor a document proof", where=str(path), expected=expected
        )
    with of_file(path):
        return _KINDS[value["format"]].from_json(value)


def window_of(proof: OwnerProof) -> str:
    """Return the name of the window that a proof names; nobody vouches for it."""
    origin = proof.index.origin if isinstance(proof, RowProof) else proof.origin
    return origin.rpartition("/")[2]


def check(proof: OwnerProof, policy: Policy, given: Given) -> tuple[list[StepResult], Place | None]:
    """Run every check of a proof; return them, and where the log has the end of a document.

    Args:
        proof: of either kind.
        policy: of the window.
        given: what is at hand beside it; a step without what it needs is "not done".

    Raises:
        RejectedError: a check that fails.
        RagauditError: as `RowProof.verify` and `DocumentProof.verify`.
    """
    if isinstance(proof, DocumentProof):
        place = proof.verify(policy, _COMMIT)
        return [StepResult(1, "log", "done"), StepResult(2, "document list", "done")], place
    index = proof.index.verify(policy)
    steps = [StepResult(1, "log", "done")]
    proof.index.check(index, [proof.row], policy, _COMMIT)
    steps.append(StepResult(2, "row", "done", _holds(proof)))
    steps.append(_check_text(proof, given))
    steps.append(_check_vector(proof, policy, given))
    return steps, None


def check_file(
    path: Path, source: Source, text: Path | None, attributes: Path | None
) -> list[StepResult]:
    """Run every check of the proof in a file, and say what it proves in the last of them.

    Args:
        path: of a row proof or a document proof.
        source: of its window.
        text, attributes: files with the document's own, of a row proof.

    Raises:
        RagauditError: as `read`, `check` and `Source.open`.
    """
    proof = read(path)
    policy, window = source.open(proof)
    steps = [StepResult(0, "window", "done") if window is None else check_pin(window)]
    embed = None if window is None else offline.embed_of(window)
    done, place = check(proof, policy, Given.read(text, attributes, embed))
    steps += done
    if isinstance(proof, DocumentProof):
        said = described(proof, policy, place, window).sentence
        steps.append(StepResult(3, "document", "done", said))
    return steps


def described(
    proof: DocumentProof, policy: Policy, place: Place | None, window: Window | None
) -> Erased:
    """Return whether a document is gone, and since when, in words.

    Args:
        proof: verified.
        policy: of the window.
        place: where the log has the entry of the version without the document, as `check` returns.
        window: with its activations, where it is at hand; else the time is the earliest that the
            entry allows.
    """
    where = f"the index of {proof.tenant} in window {policy.window}"
    if proof.listed is None or proof.listed.ended is None:
        return Erased(True, None, None, f"{proof.id} was never in {where}.")
    version = proof.gone_since
    if version is None:
        at = proof.listed.position
        sentence = (
            f"{proof.id} is still there: row {at} of version {proof.entry.version} of {where}."
        )
        return Erased(False, None, None, sentence)
    if proof.gone is None or place is None:
        sentence = (
            f"{proof.id} is gone from {where}: version {version}, its last one, has a null row in "
            "its place; under noise nothing says since when."
        )
        return Erased(True, None, version, sentence)
    if window is None:
        logged = Version.parse(proof.gone.entry.body).time
        instant = next((i for i in policy.activation_instants if 1000 * i > logged), None)
        since = None if instant is None else rfc3339(1000 * instant)
        how = f"in force from {since} at the earliest"
    else:
        activation = activation_of(place.index, window.view.covered_sizes)
        instants = policy.activation_instants
        since = None if activation is None else rfc3339(1000 * instants[activation - 1])
        how = f"in force since {since}"
    if since is None:
        how = "which no instant of the window put in force"
    sentence = f"{proof.id} is gone from {where} since version {version}, {how}."
    return Erased(True, since, version, sentence)


def _holds(proof: RowProof) -> str:
    row = proof.row
    if row.null:
        said = "marked as deleted" if row.marked else "of no document"
        return f"row {row.position} is a null row, {said}"
    return f"row {row.position} holds {row.id}"


def _check_text(proof: RowProof, given: Given) -> StepResult:
    row = proof.row
    if given.text is None and given.attributes is None:
        return StepResult(3, "text", "not done", "no --text")
    text = row.content if given.text is None else given.text
    attributes = row.attributes if given.attributes is None else given.attributes
    if text is None or attributes is None:
        lacking = "--text" if text is None else "--attributes"
        return StepResult(3, "text", "not done", f"the proof has none of its own: no {lacking}")
    if not row.holds(text, attributes):
        where = f"row {row.position}"
        raise CommitmentRejected("committed with another text or other metadata", where=where)
    return StepResult(3, "text", "done")


def _check_vector(proof: RowProof, policy: Policy, given: Given) -> StepResult:
    row = proof.row
    text = row.content if given.text is None else given.text
    if row.null or given.embed is None or not (text or "").strip():
        lacking = "a null row" if row.null else "no embedder at hand, or no text"
        return StepResult(4, "vector", "not done", lacking)
    [made] = given.embed([str(text)])
    if said := far_off(made, row, policy):
        raise CommitmentRejected(f"{row.id} {said}", where=f"row {row.position}")
    return StepResult(4, "vector", "done")


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedError("not UTF-8", where=str(path), expected="the document's text") from None
