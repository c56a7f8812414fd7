"""Which embedders a verifier has of its own, to repeat embeddings of sampled texts (check 18)."""

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field
from ragaudit.serving.settings import Section, Url, beside

__all__ = ["BUNDLED", "EmbedderSettings", "EndpointSettings", "absolute_embedder"]


BoundedUrl = Annotated[Url, Field(max_length=2048)]
Model = Annotated[str, Field(min_length=1, max_length=256)]


class EndpointSettings(Section):
    """How this verifier reaches a service with ``POST /embeddings``; ``url`` ends before that.

    ``models`` are those that it believes the service about: a manifest may declare any.
    """

    url: BoundedUrl
    models: tuple[Model, ...] = Field(min_length=1, max_length=64)
    key_file: Path | None = None
    ca_file: Path | None = None
    timeout_seconds: float = Field(default=30.0, gt=0, le=600)


class EmbedderSettings(Section):
    """Beside the bundled WordLlama, which needs nothing: a model's folder, and a service.

    ``folder`` is of ``sentence-transformers``, ``endpoint`` of ``openai-compatible``. Which one a
    window needs, its manifest says; what is not there leaves A1 not established.
    """

    folder: Path | None = None
    endpoint: EndpointSettings | None = None


BUNDLED: Final = EmbedderSettings()
"""Of a verifier that has nothing but the bundled embedder."""


def absolute_embedder(folder: Path, settings: EmbedderSettings) -> EmbedderSettings:
    """Return the settings with paths relative to the folder of the settings file.

    Args:
        folder: of the settings file.
        settings: are not changed.
    """
    found = beside(folder, settings, "folder")
    if found.endpoint is None:
        return found
    endpoint = beside(folder, found.endpoint, "key_file", "ca_file")
    return found.model_copy(update={"endpoint": endpoint})
