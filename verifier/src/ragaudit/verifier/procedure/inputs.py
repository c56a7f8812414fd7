"""Access to the items, and what else a run is given; every missing item has an owner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.ledger.log.notes import VerifierKey
from ragaudit.ledger.messages.merkle_commitments import IndexCommitment
from ragaudit.privacy.accounting.table import EpsilonTable
from ragaudit.verifier import evidence as items
from ragaudit.verifier.engines import Engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure.facts import CONFIDENTIAL_PART, MissingInput

Part = Literal["public", "all"]
Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Stated:
    """Numbers that checks find and the verdict states beside the results; None until found.

    Attributes:
        estimated: accounts of the largest group that looks alike, of check 20.
        disputes_open: disputes that nobody judged, of check 15.
        epsilon: the table of check 21.
    """

    estimated: int | None = None
    disputes_open: int | None = None
    epsilon: EpsilonTable | None = None


class CommittedEmbedder(Protocol):
    """The committed embedder, where it is at hand."""

    @property
    def digest(self) -> bytes:
        """C_emb of the artefacts that it runs."""

    def embed(self, text: str) -> npt.NDArray[np.int8]:
        """Return the quantised embedding of a text, int8[d].

        Raises:
            RagauditError: the text has none.
        """


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
        self.stated = Stated()
        self._progress = progress
        self._indices: dict[str, IndexCommitment | MissingInput] = {}
        self._accepted: dict[str, MissingInput | None] = {}

    def progress(self, step: str, done: int, total: int) -> None:
        """Report where a long check stands.

        Raises:
            Interrupted: the caller's function raised.
        """
        if self._progress is None:
            return
        try:
            self._progress(step, done, total)
        except BaseException as error:
            raise Interrupted(error) from error

    def item(self, name: str, owner: str) -> bytes:
        """Return the bytes of an item.

        Args:
            name: of spec 10.1.
            owner: id of the check that says so where the item is missing.

        Raises:
            MissingInput: there is no such item; of a confidential one where only the public part
                is at hand, CONFIDENTIAL_PART is the owner.
        """
        if name in self.evidence:
            return self.evidence[name]
        if self.part == "public" and not name.startswith(items.PUBLIC):
            raise MissingInput(CONFIDENTIAL_PART, f"{name} is confidential")
        raise MissingInput(owner, f"{name} is missing")

    def json(self, name: str, owner: str) -> object:
        """Return the value of a JSON item.

        Raises:
            MissingInput: as for :meth:`item`; of ``owner`` also if it is not canonical JSON.
        """
        try:
            value: object = canonical_json.loads(self.item(name, owner))
        except MalformedError as error:
            raise MissingInput(owner, f"{name}: {error}") from error
        return value

    def list(self, name: str, owner: str) -> list[object]:
        """Return the elements of a JSON list.

        Raises:
            MissingInput: as for :meth:`json`; of ``owner`` also if it is not a list.
        """
        value = self.json(name, owner)
        if not isinstance(value, list):
            raise MissingInput(owner, f"{name}: not a list")
        return value
