"""What an embedder and a generator are made of: C_emb and C_gen (docs/spec 5.3, 11.7)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, Literal, Self, TypeAlias

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.encoding.parameters import LIMITS, SQUARED_NORM
from ragaudit.encoding.text import b64_decode, b64_encode
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.kernel import (
    Converted,
    Digest,
    Integer,
    Items,
    MapOf,
    Message,
    Text,
)

MAX_MANIFEST_BYTES = 2**20  # a manifest names files, it does not hold them
MAX_PROBES = 64  # of 3,072 entries they are a quarter of the manifest
MAX_PROBE_BYTES = 1024

DETERMINISTIC: Final = frozenset({"none", "wordllama-l2-supercat-256"})
"""Names of embedders that give every machine the same integers (5.3)."""
USUAL_TOLERANCE: Final = 4
"""Of the others, where nobody says more: what the shipped terms allow (9.4)."""

Kind = Literal["files", "none", "endpoint"]

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


def _check_digest(digits: str) -> None:
    if _DIGEST.fullmatch(digits) is None:
        raise MalformedError("not a file digest", expected="64 digits 0-9a-f")


_SAID: Final = Text(1, MAX_MANIFEST_BYTES)
Files: TypeAlias = Annotated[Mapping[str, str], MapOf(_SAID, Text(1, 64, _check_digest, "hex"))]


class Probe(Message, where="probe"):
    """A text and the embedding that the committed endpoint gave it.

    Attributes:
        text: which was embedded.
        vector: int8[d] as d bytes in two's complement, quantised with B = 127 (spec 2.1) whatever
            the policy's B: it is compared within a tolerance, not scored.
    """

    ERROR: ClassVar[type[MalformedError]] = MalformedError

    text: Annotated[str, Text(1, MAX_PROBE_BYTES)]
    vector: Annotated[
        bytes, Converted(Text(1, 4 * LIMITS.dimension), b64_decode, b64_encode, "base64")
    ]


class EmbedderManifest(Message, kind="embedder"):
    """What an embedder is made of.

    Attributes:
        name: the name under which a registry loads it.
        dimension: d, entries of an embedding.
        prompt_template: how a text is put before the model; ``{text}`` stands for the text. None
            for the kind "none".
        schema: further fixed properties, as texts (pooling, normalisation, an endpoint's model).
        files: relative path -> SHA-256 of the file in lower-case hexadecimal.
        kind: "files": the files are the embedder. "endpoint": a service computes the
            embeddings, which is held to `probes`. "none": applications send vectors.
        probes: of an endpoint, 1..64, of different texts.

    Raises:
        MalformedError: members that do not fit together.
    """

    ERROR: ClassVar[type[MalformedError]] = MalformedError

    name: Annotated[str, _SAID]
    dimension: Annotated[int, Integer(1, LIMITS.dimension)]
    prompt_template: Annotated[str, _SAID] | None
    schema: Annotated[Mapping[str, str], MapOf(_SAID, _SAID)]
    # Each file by digest: an auditor must run the model that embedded the index, not one of its
    # name.
    files: Files
    kind: Kind = "files"
    probes: Annotated[tuple[Probe, ...], Items(0, MAX_PROBES)] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if self.kind == "none":
            # Nothing embeds, so nothing about it can be committed to.
            held = self.prompt_template is not None or self.schema or self.files
            if self.name != "none" or held:
                raise MalformedError(
                    "an embedder that is none has no properties",
                    where="kind",
                    expected="name none, prompt_template null, no schema, no files",
                )
        # Without a place for it every text would have the same embedding.
        elif "{text}" not in (self.prompt_template or ""):
            raise MalformedError(
                "no place for the text", where="prompt_template", expected="{text}"
            )
        if self.kind == "endpoint" and (self.files or "model" not in self.schema):
            raise MalformedError(
                "not an endpoint", where="kind", expected="schema.model, no files of ours"
            )
        if bool(self.probes) != (self.kind == "endpoint"):
            raise MalformedError(
                f"{len(self.probes)} probes", where="probes", expected="of an endpoint alone"
            )
        if len({probe.text for probe in self.probes}) < len(self.probes):
            raise MalformedError("two probes of one text", where="probes")
        for number, probe in enumerate(self.probes):
            # Two's complement, without a library of arrays: the ledger has none.
            squared = sum(min(byte, 256 - byte) ** 2 for byte in probe.vector)
            if len(probe.vector) != self.dimension or not 0 < squared <= SQUARED_NORM:
                raise MalformedError(
                    "not a quantised embedding",
                    where=f"probes[{number}].vector",
                    expected=f"int8[{self.dimension}] of norm 1 to 127",
                )

    @property
    def tolerance(self) -> int:
        """The least tolerance (2.2) under which honest re-embeddings usually agree."""
        return 0 if self.name in DETERMINISTIC else USUAL_TOLERANCE

    @classmethod
    def of_none(cls, dimension: int) -> "EmbedderManifest":
        """Return the manifest of a window whose applications send vectors.

        Args:
            dimension: d, entries of a vector.
        """
        return cls("none", dimension, None, {}, {}, kind="none")

    @classmethod
    def parse(cls, data: bytes) -> "EmbedderManifest":
        """Return the manifest of its canonical bytes, at most 2^20.

        Args:
            data: canonical JSON: another spelling would have another C_emb.

        Raises:
            MalformedError: anything else.
        """
        if len(data) > MAX_MANIFEST_BYTES:
            most = f"at most {MAX_MANIFEST_BYTES} bytes"
            raise MalformedError("manifest too long", expected=most)
        return super().parse(data)

    def digest(self) -> bytes:
        """Return C_emb, 32 bytes."""
        return structure("embedder", self.encode())


MAX_TEXT: Final = 10_000
MAX_VOCABULARY: Final = 2**24


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
    files: Files
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
