"""The description of a generator, whose digest is C_gen (docs/spec/11-generation.md §11.7)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import InvalidArgumentError, MalformedError
from ragaudit.encoding.tagged import DIGEST_BYTES
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.fields import Fields, JsonMessage

__all__ = ["GeneratorManifest", "GeneratorProbe", "Prompt", "Vocabulary", "VocabularyTerms"]

MAX_MANIFEST_BYTES: Final = 2**20  # a manifest names files, it does not hold them
MAX_PROBES: Final = 64
MAX_TEXT: Final = 10_000
MAX_VOCABULARY: Final = 2**24
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Prompt(JsonMessage):
    """What stands around documents and question, in one piece of text.

    Attributes:
        template: ``{documents}`` and ``{question}`` stand for them, each once or more. The answer
            so far follows it, so that a service reuses what it computed of the rest.
        between: joins the documents of one voter.
    """

    MEMBERS: ClassVar[str] = "template between"
    WHERE: ClassVar[str] = "prompt"

    template: str = "{documents}\n\n{question}\n"
    between: str = "\n"

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

    def _members(self) -> dict[str, Any]:
        return {"template": self.template, "between": self.between}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        template = f.text("template", 1, MAX_TEXT)
        for place in ("{documents}", "{question}"):
            if place not in template:
                raise f.error("template", f"no place for {place}", expected=place)
        return cls(template, f.text("between", 0, MAX_TEXT))


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


@dataclass(frozen=True, slots=True)
class VocabularyTerms(JsonMessage):
    """A vocabulary by digest.

    Attributes:
        digest: of the canonical JSON list of all tokens' texts, 32 bytes.
        size: how many there are.
        end: number of the one that ends an answer.
    """

    MEMBERS: ClassVar[str] = "digest size end"
    WHERE: ClassVar[str] = "vocabulary"

    digest: bytes
    size: int
    end: int

    def _members(self) -> dict[str, Any]:
        return {"digest": self.digest.hex(), "size": self.size, "end": self.end}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        size = f.integer("size", 1, MAX_VOCABULARY)
        return cls(f.hex("digest", DIGEST_BYTES), size, f.integer("end", 0, size - 1))


@dataclass(frozen=True, slots=True)
class GeneratorProbe(JsonMessage):
    """A public question, and what the committed model answers that reads no document.

    Attributes:
        question: put before the model as a voter's.
        answer: text of its next token, "" for the end token; without a vocabulary, its answer.
    """

    MEMBERS: ClassVar[str] = "question answer"
    WHERE: ClassVar[str] = "probe"

    question: str
    answer: str

    def _members(self) -> dict[str, Any]:
        return {"question": self.question, "answer": self.answer}

    @classmethod
    def _read(cls, f: Fields) -> Self:
        return cls(f.text("question", 1, MAX_TEXT), f.text("answer", 0, MAX_TEXT))


@dataclass(frozen=True, slots=True)
class GeneratorManifest(JsonMessage):
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

    FORMAT: ClassVar[str] = "ragaudit/v1/generator"
    MEMBERS: ClassVar[str] = "kind model files vocabulary prompt keywords decoding probes"
    WHERE: ClassVar[str] = "generator"

    kind: str
    model: str
    files: Mapping[str, str]
    vocabulary: VocabularyTerms | None
    prompt: Prompt
    keywords: Prompt | None
    probes: tuple[GeneratorProbe, ...]

    @property
    def digest(self) -> bytes:
        """C_gen, 32 bytes."""
        return structure("generator", self.encode())

    def _members(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model,
            "files": dict(self.files),
            "vocabulary": None if self.vocabulary is None else self.vocabulary.to_json(),
            "prompt": self.prompt.to_json(),
            "keywords": None if self.keywords is None else self.keywords.to_json(),
            "decoding": "greedy",
            "probes": [probe.to_json() for probe in self.probes],
        }

    @classmethod
    def _read(cls, f: Fields) -> Self:
        f.constant("decoding", "greedy")
        vocabulary = keywords = None
        if f.raw("vocabulary") is not None:
            vocabulary = f.message("vocabulary", VocabularyTerms)
        if f.raw("keywords") is not None:
            keywords = f.message("keywords", Prompt)
        # Either tokens or whole answers: a model that gives both would be two mechanisms.
        if (vocabulary is None) == (keywords is None):
            raise f.error("keywords", "one of vocabulary and keywords is needed")
        kind = f.choice("kind", "files", "endpoint")
        files = _files(f)
        # Weights behind an address are nobody's to commit to; files without a name are no model.
        if (kind == "files") != bool(files):
            raise f.error("files", "files of an endpoint, or none of a model that is files")
        probes = f.messages("probes", GeneratorProbe, 1, MAX_PROBES)
        if len({probe.question for probe in probes}) < len(probes):
            raise f.error("probes", "two probes of one question")
        return cls(
            kind=kind,
            model=f.text("model", 1, 500),
            files=files,
            vocabulary=vocabulary,
            prompt=f.message("prompt", Prompt),
            keywords=keywords,
            probes=probes,
        )

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the manifest of its canonical bytes, at most 2^20; MalformedError."""
        if len(data) > MAX_MANIFEST_BYTES:
            most = f"at most {MAX_MANIFEST_BYTES} bytes"
            raise MalformedRecord("manifest too long", where=cls.WHERE, expected=most)
        return super(GeneratorManifest, cls).parse(data)

    def check_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Check that a vocabulary is the committed one.

        Raises:
            MalformedError: another one.
        """
        if vocabulary.terms != self.vocabulary:
            raise MalformedError("not the committed vocabulary", where="vocabulary")


def _files(f: Fields) -> dict[str, str]:
    files = f.object("files")
    for path, digest in files.items():
        if not path or not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
            raise f.error(f"files.{path[:80]}", "not a file digest", "64 digits 0-9a-f")
    return files
