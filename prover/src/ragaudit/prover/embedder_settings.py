"""Settings of the embedder: none, a bundled one, a folder of a model, or a service.

The key of a service is in a file of its own.
"""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator
from ragaudit.embedders import registry
from ragaudit.serving.settings import Section, Url, beside

Probe = Annotated[str, Field(min_length=1, max_length=256)]


class EndpointSettings(Section):
    """A service that speaks OpenAI's ``POST /embeddings``; ``url`` ends before ``/embeddings``.

    ``send_dimension`` asks it for embeddings of this length; ``probes`` are the texts whose
    embeddings C_emb commits to (the built-in ones if there are none here).
    """

    url: Url
    model: str = Field(min_length=1, max_length=256)
    dimension: int = Field(ge=1, le=3072)
    send_dimension: bool = False
    prompt_template: str = Field(default="{text}", pattern=r"\{text\}", max_length=4096)
    probes: tuple[Probe, ...] = Field(default=(), max_length=64)
    key_file: Path | None = None
    ca_file: Path | None = None
    batch: int = Field(default=64, ge=1, le=2048)
    timeout_seconds: float = Field(default=30.0, gt=0, le=600)


class EmbedderSettings(Section):
    """Which embedder; what it is made of is what C_emb commits to.

    ``folder`` is of ``sentence-transformers``, ``endpoint`` of ``openai-compatible``.
    """

    name: str = registry.DEFAULT
    folder: Path | None = None
    endpoint: EndpointSettings | None = None

    @model_validator(mode="after")
    def _section_of_the_name(self) -> Self:
        for member, name in (("folder", "sentence-transformers"), ("endpoint", registry.ENDPOINT)):
            given = getattr(self, member) is not None
            if given != (self.name == name):
                say = "is given" if given else "is missing"
                raise ValueError(f"{member} {say}, and the embedder is {self.name}")
        return self


def absolute_embedder(folder: Path, settings: EmbedderSettings) -> EmbedderSettings:
    """Return the settings with paths relative to the folder of the settings file.

    Args:
        folder: of the settings file.
        settings: are not changed.
    """
    settings = beside(folder, settings, "folder")
    if settings.endpoint is None:
        return settings
    endpoint = beside(folder, settings.endpoint, "key_file", "ca_file")
    return settings.model_copy(update={"endpoint": endpoint})
