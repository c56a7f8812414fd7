"""Settings of the generation channel: the language model, and the terms of new windows."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from ragaudit.prover.backend_settings import Url
from ragaudit.serving.settings import Section, beside

_RATIO = r"^[1-9][0-9]{0,11}(/[1-9][0-9]{0,11})?$"


def _text(value: object) -> object:
    """YAML reads 2 as a number; a fraction is text, a float is none."""
    return str(value) if type(value) is int else value


Ratio = Annotated[
    str,
    BeforeValidator(_text),
    Field(pattern=_RATIO),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": _RATIO}, {"type": "integer"}]}),
]


class GeneratorSettings(Section):
    """A service that speaks OpenAI's ``POST /completions``; ``url`` ends before ``/completions``.

    ``manifest_file`` is what new windows commit to, ``vocabulary_file`` a JSON list of the texts of
    all tokens. ``questions`` are answers that are generated at a time.
    """

    url: Url
    manifest_file: Path
    vocabulary_file: Path
    served_as: str | None = Field(default=None, min_length=1, max_length=256)
    key_file: Path | None = None
    ca_file: Path | None = None
    batch: int = Field(default=16, ge=1, le=2048)
    parallel: int = Field(default=4, ge=1, le=64)
    questions: int = Field(default=4, ge=1, le=64)
    timeout_seconds: float = Field(default=30.0, gt=0, le=600)
    deadline_seconds: float = Field(default=120.0, gt=0, le=3600)

    def beside(self, folder: Path) -> "GeneratorSettings":
        """Return the section with its files relative to ``folder``, that of the settings."""
        return beside(folder, self, "manifest_file", "vocabulary_file", "key_file", "ca_file")


class BinSettings(Section):
    """Where murag-ada looks for documents: bins of scores, read until there are enough.

    ``edges`` are the lower edges in lattice units, falling; ``epsilon`` of a count, a part of the
    question's; ``enough`` documents, by a noisy sum, end the reading.
    """

    edges: list[int] = Field(min_length=1, max_length=64)
    epsilon: Ratio
    enough: int = Field(ge=0, le=2**32)


class ChannelSettings(Section):
    """The generation channel of new windows (docs/spec/11-generation.md §11.8).

    ``threshold`` is tau in lattice units, for murag alone, and ``bins`` for murag-ada;
    ``agreement`` the votes that are one, half of the voters without it; ``differing_votes`` those
    of a replayed answer that may differ, without which nothing is replayed.
    """

    mechanism: Literal["murag", "murag-ada", "naive"] = "murag"
    epsilon: Ratio
    epsilon_token: Ratio
    voters: int = Field(ge=1, le=2**16)
    slots_per_voter: int = Field(default=1, ge=1, le=2**16)
    agreement: Ratio | None = None
    tokens: int = Field(default=64, ge=1, le=4096)
    uses: int = Field(ge=1, le=2**16)
    threshold: int | None = Field(default=None, ge=0)
    bins: BinSettings | None = None
    prove: Literal["sampled", "all"] = "sampled"
    group: int = Field(default=100, ge=1, le=2**16)
    differing_votes: int | None = Field(default=None, ge=0, le=10**6)
    answer_delay_seconds: int = Field(default=10, ge=1, le=3600)
    reuse: bool = True

    @model_validator(mode="after")
    def _one_threshold(self) -> "ChannelSettings":
        if self.bins is not None and self.threshold is not None:
            raise ValueError("threshold and bins; expected one of them")
        return self

    def member(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Return the policy's member.

        Args:
            manifest: of the model, as JSON.
        """
        differing, bins = self.differing_votes, self.bins
        return {
            "mechanism": self.mechanism,
            "answerer": {
                "kind": "dp-rag",
                "epsilon_token": self.epsilon_token,
                "voters": self.voters,
                "slots_per_voter": self.slots_per_voter,
                "threshold": self.agreement,
                "tokens": self.tokens,
            },
            "epsilon": self.epsilon,
            "uses": self.uses,
            "threshold": self.threshold if bins is None else bins.model_dump(),
            "charges": {"prove": self.prove, "group": self.group},
            "replay": None if differing is None else {"differing_votes": differing},
            "generator": manifest,
            "answer_delay_seconds": self.answer_delay_seconds,
            "reuse": self.reuse,
        }
