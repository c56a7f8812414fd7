"""Models of the verifier's own: the committed embedder, and the committed generator."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

import numpy.typing as npt
from ragaudit.encoding.parameters import B
from ragaudit.ledger.messages.generator_manifest import Vocabulary

__all__ = ["AnswerGenerator", "CommittedEmbedder", "OwnGenerator", "TokenGenerator"]


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

    def embed_row(
        self, text: str, *, metric: str, largest_norm: Decimal | None, norm_bound: int
    ) -> npt.NDArray[Any]:
        """Return the row of a text in an index, integers [d] (spec 2.5).

        Args:
            text: of a document, not blank.
            metric, largest_norm, norm_bound: of the policy.

        Raises:
            RagauditError: the text has no embedding, or the metric no row for it.
        """


@runtime_checkable
class TokenGenerator(Protocol):
    """The committed generator of tokens (DP-RAG), at an address of the verifier's own."""

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


@runtime_checkable
class AnswerGenerator(Protocol):
    """The committed generator of whole answers (DP-KSA), at an address of the verifier's own."""

    def whole(self, question: str, documents: Sequence[str]) -> Sequence[str | None]:
        """Return the answer of a voter to each document; None where the model gives none."""

    def final(self, question: str, keywords: Sequence[str]) -> str:
        """Return the final answer, as `ResponseVoters` says.

        Raises:
            UnavailableError: the model does not answer.
        """


OwnGenerator = TokenGenerator | AnswerGenerator
