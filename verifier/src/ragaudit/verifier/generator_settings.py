"""Which language models a verifier can ask, to repeat probes and votes (checks 29 and 30)."""

from pathlib import Path

from pydantic import Field
from ragaudit.serving.settings import Section, beside
from ragaudit.verifier.embedder_settings import BoundedUrl, Model

__all__ = ["GeneratorSettings"]


class GeneratorSettings(Section):
    """A service that speaks OpenAI's API; ``url`` ends before ``/completions``.

    ``models`` are those that it believes the service about: a manifest may name any.
    ``vocabulary_file`` is a JSON list of the texts of all tokens, for a model that is asked for
    tokens; one of whole answers has none. ``served_as`` what the service
    calls its model where that is not the manifest's name.
    """

    url: BoundedUrl
    models: tuple[Model, ...] = Field(min_length=1, max_length=64)
    vocabulary_file: Path | None = None
    served_as: Model | None = None
    key_file: Path | None = None
    ca_file: Path | None = None
    batch: int = Field(default=16, ge=1, le=2048)
    parallel: int = Field(default=4, ge=1, le=64)
    timeout_seconds: float = Field(default=30.0, gt=0, le=600)

    def beside(self, folder: Path) -> "GeneratorSettings":
        """Return the section with its files relative to ``folder``, that of the settings."""
        return beside(folder, self, "vocabulary_file", "key_file", "ca_file")
