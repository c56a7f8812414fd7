"""Access to the items, and what else a run is given; every missing item has an owner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.messages.merkle_commitments import IndexCommitment
from ragaudit.verifier import evidence as items
from ragaudit.verifier.engines import Engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure.framework import CONFIDENTIAL_PART, Lacking

Part = Literal["public", "all"]
Progress = Callable[[str, int, int], None]


class CommittedEmbedder(Protocol):
    """The committed embedder, where it is at hand."""

    @property
    def digest(self) -> bytes:
        """C_emb of the artefacts that it runs."""

    def embed(self, text: str) -> npt.NDArray[np.int8]:
        """The quantised embedding of a text, int8[d]; RagauditError if it has none."""


@dataclass(frozen=True, slots=True)
class Pins:
    """Keys that the verifier knows from elsewhere; None where only the policy names them."""

    provider: PublicKey | None = None
    cosigner: VerifierKey | None = None
    verifier: PublicKey | None = None
    verdict: PublicKey | None = None


class Interrupted(Exception):
    """The progress callback raised; carries what it raised past the checks."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class Inputs:
    """The evidence of one window, and what it is judged with.

    Args:
        part: "public" when only the public items are at hand.
        now: the verifier's clock in Unix milliseconds where the opening is checked; None
            afterwards, when the countersignature says when that was.
    """

    def __init__(
        self,
        evidence: Evidence,
        *,
        engine: Engine,
        pins: Pins,
        embedder: CommittedEmbedder | None = None,
        part: Part = "all",
        now: int | None = None,
        only: frozenset[int] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.evidence = evidence
        self.engine = engine
        self.pins = pins
        self.embedder = embedder
        self.part = part
        self.now = now
        self.only = only
        self.stated: dict[str, Any] = {}  # numbers that the verdict states beside the results
        self._progress = progress
        self._indices: dict[str, IndexCommitment | Lacking] = {}
        self._accepted: dict[str, Lacking | None] = {}

    def progress(self, step: str, done: int, total: int) -> None:
        """Report where a long check stands."""
        if self._progress is None:
            return
        try:
            self._progress(step, done, total)
        except BaseException as error:
            raise Interrupted(error) from error

    def item(self, name: str, owner: str) -> bytes:
        """The bytes of an item; its absence is the owner's."""
        if name in self.evidence:
            return self.evidence[name]
        if self.part == "public" and not name.startswith(items.PUBLIC):
            raise Lacking(CONFIDENTIAL_PART, f"{name} is confidential")
        raise Lacking(owner, f"{name} is missing")

    def json(self, name: str, owner: str) -> object:
        """The value of a JSON item; that it is none is the owner's."""
        try:
            value: object = canonical_json.loads(self.item(name, owner))
        except MalformedError as error:
            raise Lacking(owner, f"{name}: {error}") from error
        return value

    def list(self, name: str, owner: str) -> list[object]:
        """The elements of a JSON list; that it is none is the owner's."""
        value = self.json(name, owner)
        if not isinstance(value, list):
            raise Lacking(owner, f"{name}: not a list")
        return value
