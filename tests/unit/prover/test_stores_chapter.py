"""docs/stores.md: its settings are settings, and its words are those of the errors."""

import re
from pathlib import Path

import pytest
import yaml
from ragaudit.prover.backend_settings import BackendSettings, EmbedderSettings
from ragaudit.serving.settings import Section

ROOT = Path(__file__).parents[3]
CHAPTER = (ROOT / "docs/stores.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", CHAPTER, re.DOTALL)
SECTIONS: dict[str, type[Section]] = {"backend": BackendSettings, "embedder": EmbedderSettings}


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_is_a_section_of_the_settings(example: str) -> None:
    ((name, section),) = yaml.safe_load(example).items()
    SECTIONS[name].model_validate(section)


def test_every_backend_and_embedder_has_an_example_or_is_the_default() -> None:
    assert len(EXAMPLES) == 5
    for kind in ("chroma", "pgvector"):
        assert f"kind: {kind}" in CHAPTER
    for name in ("none", "openai-compatible", "sentence-transformers"):
        assert f"name: {name}" in CHAPTER
    assert EmbedderSettings().name in CHAPTER


def test_what_goes_wrong_is_said_in_these_words() -> None:
    folder = ROOT / "prover/src/ragaudit/prover/backends"
    code = " ".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    for words in (
        "cannot be reached", "does not show the collection",
        "the collection changed while it was read", "as those of tenant",
        "the database has no pgvector",
        "its user may not read the table",
    ):  # fmt: skip
        assert words in code and words in CHAPTER
