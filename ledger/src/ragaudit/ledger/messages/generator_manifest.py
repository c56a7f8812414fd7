"""The description of a generator, whose digest is C_gen (docs/spec/11-generation.md §11.7)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.kernel import Digest, Integer, Items, MapOf, Message, Text

__all__ = ["GeneratorManifest", "GeneratorProbe", "Prompt", "Vocabulary", "VocabularyTerms"]

MAX_MANIFEST_BYTES: Final = 2**20  # a manifest names files, it does not hold them
MAX_PROBES: Final = 64
MAX_TEXT: Final = 10_000
MAX_VOCABULARY: Final = 2**24
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


def _check_digest(digits: str) -> None:
    if _DIGEST.fullmatch(digits) is None:
        raise MalformedError("not a file digest", expected="64 digits 0-9a-f")


class Prompt(Message, where="prompt"):
    """What stands around documents and question, in one piece of text.

    Attributes:
        template: ``{documents}`` and ``{question}`` stand for them, each once or more. The answer
            so far follows it, so that a service reuses what it computed of the rest.
        between: joins the documents of one voter.
    """

    template: Annotated[str, Text(1, MAX_TEXT)] = "{documents}\n\n{question}\n"
    between: Annotated[str, Text(0, MAX_TEXT)] = "\n"

    def of(self, documents: Sequence[str], question: str) -> str:
        """Return the text for a voter; empty documents leave no trace.

        Args:
            documents: of the voter, "" where a slot is empty.
            question: as it was asked.
        """
        texts = self.between.join(text for text in documents if text)
        # In one pass over the template: a document may hold "{question}".
        first, *rest = self.template.split("{documents}")
        parts = [part.replace("{question}", question) for part in (first, *rest)]
        return texts.join(parts)

    def _check(self) -> None:
        for place in ("{documents}", "{question}"):
            if place not in self.template:
                raise MalformedError(f"no place for {place}", where="template", expected=place)


@dataclass(frozen=True)
class Vocabulary:
    """The public tokens of a model.

    Attributes:
        tokens: text of each as the service writes it, none twice; an answer is their
            concatenation.
        end: which of them ends an answer.

    Raises:
        InvalidArgumentError: a text twice, or an end that is none of them.
    """

    tokens: tuple[str, ...]
    end: int

    def __post_init__(self) -> None:
        if len(set(self.tokens)) != len(self.tokens):
            raise InvalidArgumentError(
                "two tokens with one text", where="tokens", expected="each text once"
            )
        if not 0 <= self.end < len(self.tokens):
            raise InvalidArgumentError(
                "no such token", where="end", expected=f"0..{len(self.tokens) - 1}"
            )
        object.__setattr__(self, "_ids", {text: id_ for id_, text in enumerate(self.tokens)})

    def id_of(self, text: str) -> int | None:
        """Return the number of a token, None if there is no such token."""
        ids: dict[str, int] = vars(self)["_ids"]
        return ids.get(text)

    def text(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens; the end token has none."""
        return "".join(self.tokens[each] for each in tokens if each != self.end)

    @property
    def terms(self) -> "VocabularyTerms":
        """What a manifest says of this vocabulary."""
        data = canonical_json.dumps(list(self.tokens))
        return VocabularyTerms(structure("vocabulary", data), len(self.tokens), self.end)


class VocabularyTerms(Message, where="vocabulary"):
    """A vocabulary by digest.

    Attributes:
        digest: of the canonical JSON list of all tokens' texts, 32 bytes.
        size: how many there are.
        end: number of the one that ends an answer.
    """

    digest: Digest
    size: Annotated[int, Integer(1, MAX_VOCABULARY)]
    end: Annotated[int, Integer(0, MAX_VOCABULARY - 1)]

    def _check(self) -> None:
        if self.end >= self.size:
            raise MalformedError("not such an integer", where="end", expected=f"0..{self.size - 1}")


class GeneratorProbe(Message, where="probe"):
    """A public question, and what the committed model answers that reads no document.

    Attributes:
        question: put before the model as a voter's.
        answer: text of its next token, "" for the end token; without a vocabulary, its answer.
    """

    question: Annotated[str, Text(1, MAX_TEXT)]
    answer: Annotated[str, Text(0, MAX_TEXT)]


class GeneratorManifest(Message, kind="generator"):
    """What a generator is made of. Decoding is greedy; there is no other.

    Attributes:
        kind: "files": the files are the model. "endpoint": a service generates, and is held to
            `probes`.
        model: as a service is asked for it.
        files: path -> SHA-256 in lower-case hexadecimal: weights, tokenizer; none of an endpoint.
        vocabulary: of a model that is asked for tokens (DP-RAG); None: for whole answers (DP-KSA).
        prompt: of a voter.
        keywords: of the final answer of DP-KSA; None with a vocabulary.
        probes: 1..64, of different questions.
    """

    kind: Literal["files", "endpoint"]
    model: Annotated[str, Text(1, 500)]
    files: Annotated[
        Mapping[str, str], MapOf(Text(1, MAX_MANIFEST_BYTES), Text(1, 64, _check_digest, "hex"))
    ]
    vocabulary: VocabularyTerms | None
    prompt: Prompt
    keywords: Prompt | None
    probes: Annotated[tuple[GeneratorProbe, ...], Items(1, MAX_PROBES)]
    decoding: Literal["greedy"] = "greedy"

    @property
    def digest(self) -> bytes:
        """C_gen, 32 bytes."""
        return structure("generator", self.encode())

    def _check(self) -> None:
        # Either tokens or whole answers: a model that gives both would be two mechanisms.
        if (self.vocabulary is None) == (self.keywords is None):
            raise MalformedError("one of vocabulary and keywords is needed", where="keywords")
        # Weights behind an address are nobody's to commit to; files without a name are no model.
        if (self.kind == "files") != bool(self.files):
            what = "files of an endpoint, or none of a model that is files"
            raise MalformedError(what, where="files")
        if len({probe.question for probe in self.probes}) < len(self.probes):
            raise MalformedError("two probes of one question", where="probes")

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the manifest of its canonical bytes, at most 2^20; MalformedError."""
        if len(data) > MAX_MANIFEST_BYTES:
            most = f"at most {MAX_MANIFEST_BYTES} bytes"
            raise MalformedRecord("manifest too long", where=cls.WHERE, expected=most)
        return super().parse(data)

    def check_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Check that a vocabulary is the committed one.

        Raises:
            MalformedError: another one.
        """
        if vocabulary.terms != self.vocabulary:
            raise MalformedError("not the committed vocabulary", where="vocabulary")
