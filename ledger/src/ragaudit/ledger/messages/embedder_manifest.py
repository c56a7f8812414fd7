"""The description of an embedder, whose digest is C_emb (docs/spec/05-records.md §5.3)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragaudit.encoding.canonical_json import dumps, loads
from ragaudit.encoding.digests import structure
from ragaudit.encoding.errors import MalformedError
from ragaudit.encoding.parameters import LIMITS

FORMAT = "ragaudit/v1/embedder"
MAX_MANIFEST_BYTES = 2**20  # a manifest names files, it does not hold them
_MEMBERS = frozenset({"format", "name", "dimension", "prompt_template", "schema", "files"})
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class EmbedderManifest:
    """What an embedder is made of.

    Attributes:
        name: the name under which a registry loads it.
        dimension: d, entries of an embedding, 1..4096.
        prompt_template: how a text is put before the model; ``{text}`` stands for the text.
        schema: further fixed properties, as texts (pooling, normalisation ...).
        files: relative path -> SHA-256 of the file in lower-case hexadecimal.

    Raises:
        MalformedError: a member out of its range.
    """

    name: str
    dimension: int
    prompt_template: str
    schema: Mapping[str, str]
    files: Mapping[str, str]

    def __post_init__(self) -> None:
        _check_text("name", self.name)
        _check_text("prompt_template", self.prompt_template)
        # Without a place for it every text would have the same embedding.
        if "{text}" not in self.prompt_template:
            raise MalformedError(
                "no place for the text", where="prompt_template", expected="{text}"
            )
        if type(self.dimension) is not int or not 1 <= self.dimension <= LIMITS.dimension:
            raise MalformedError(
                "dimension out of range", where="dimension", expected=f"1..{LIMITS.dimension}"
            )
        _check_texts("schema", self.schema)
        _check_texts("files", self.files)
        # Each file by digest: an auditor must run the model that embedded the index, not one of its
        # name.
        for path, digest in self.files.items():
            if _DIGEST.fullmatch(digest) is None:
                raise MalformedError(
                    "not a file digest", where=f"files/{path}", expected="64 digits 0-9a-f"
                )

    @classmethod
    def from_json(cls, value: Any) -> "EmbedderManifest":
        """Return the manifest of a parsed JSON value with exactly the members of §5.3.

        Args:
            value: as a JSON reader gives it.

        Raises:
            MalformedError: a missing, unknown, ill-typed or out-of-range member.
        """
        # Exactly these: C_emb would otherwise commit to members that nobody compares.
        if not isinstance(value, dict) or value.keys() != _MEMBERS:
            raise MalformedError("not an embedder manifest", expected=", ".join(sorted(_MEMBERS)))
        if value["format"] != FORMAT:
            raise MalformedError("unknown format", where="format", expected=FORMAT)
        return cls(**{name: member for name, member in value.items() if name != "format"})

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
        return cls.from_json(loads(data))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON value of §5.3."""
        return {
            "format": FORMAT,
            "name": self.name,
            "dimension": self.dimension,
            "prompt_template": self.prompt_template,
            "schema": dict(self.schema),
            "files": dict(self.files),
        }

    def encode(self) -> bytes:
        """Return the canonical bytes, the ones that are hashed and kept as evidence."""
        return dumps(self.to_json())

    def digest(self) -> bytes:
        """Return C_emb, 32 bytes."""
        return structure("embedder", self.encode())


def _check_text(where: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise MalformedError("not a text", where=where, expected="text, not empty")


def _check_texts(where: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise MalformedError("not an object", where=where, expected="object of texts")
    for key, text in value.items():
        _check_text(where, key)
        _check_text(f"{where}/{key}", text)
