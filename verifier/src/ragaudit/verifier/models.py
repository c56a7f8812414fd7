"""Models of the verifier's own: the committed embedder, and the committed generator."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy.typing as npt
from ragaudit.encoding.parameters import B
from ragaudit.ledger.messages.generator_manifest import Vocabulary

__all__ = ["CommittedEmbedder", "OwnGenerator"]


class CommittedEmbedder(Protocol):
    """The committed embedder, where it is at hand."""

    @property
    def digest(self) -> bytes:
        """C_emb of the artefacts that it runs."""

    def embed(self, text: str, norm_bound: int = B) -> npt.NDArray[Any]:
        """Return the quantised embedding of a text, integers [d].

        Args:
            text: what was asked.
            norm_bound: B of the policy.

        Raises:
            RagauditError: the text has none.
        """


class OwnGenerator(Protocol):
    """The committed generator, at an address of the verifier's own."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens that it is asked for."""

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> Sequence[int | None]:
        """Return the next token of each voter, as `TokenVoters` says.

        Raises:
            UnavailableError: the model does not answer.
        """
