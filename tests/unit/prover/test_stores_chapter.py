"""docs/stores.md: its settings are settings, and its words are those of the errors."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from chapters import DOCS, blocks, shell
from owner_prover import OWNER, export, owned_prover
from ragaudit.lab.scenario.embedder import HashEmbedder
from ragaudit.ledger.messages.signed_results import OwnerResult
from ragaudit.prover.backend_settings import BackendSettings, EmbedderSettings
from ragaudit.prover.backends.interface import Document, attributes_text
from ragaudit.prover.settings import WindowSettings
from ragaudit.serving.settings import Section
from scenario import ProverScenario

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


# The commands of docs/owner.md, run as they stand against a prover over HTTP.

OWNERS_CHAPTER = (DOCS / "owner.md").read_text(encoding="utf-8")
IDS = [f"faq-{n}" for n in range(20)]


def documents() -> list[Document]:
    return [Document(name, f"answer of {name}", attributes_text({"n": 1}, name)) for name in IDS]


@pytest.mark.slow
def test_the_commands_run_as_they_stand(
    make_scenario: Callable[..., ProverScenario], tmp_path: Path
) -> None:
    made, during, after = (
        block.replace("2026-11", "w1") for block in blocks(OWNERS_CHAPTER, "bash", "ragaudit owner")
    )
    assert len(shell(made, tmp_path).strip()) == 64
    with owned_prover(make_scenario(), tmp_path, documents()) as prover:
        # The key of the policy, which the scene has had before.
        (tmp_path / "owner.key").write_text(OWNER.seed().hex() + "\n")
        vectors = HashEmbedder(16).embed([each.content for each in documents()])
        export(documents(), tmp_path / "export.jsonl", vectors)
        (tmp_path / "faq-17.txt").write_text(documents()[17].content)
        (tmp_path / "faq-17.json").write_text(documents()[17].attributes)
        policy = prover.scenario.policy()
        environment = {
            "PROVER": prover.url, "API_KEY": prover.api_key,
            "VERIFIER_KEY": policy.keys.verifier.raw.hex(),
        }  # fmt: skip
        said = shell(during, tmp_path, **environment)
        assert "faq-17: row 17 of version 1" in said and "No check failed." in said
        result = OwnerResult.verified((tmp_path / "result.json").read_bytes(), policy, "one")
        assert result.result == "PASSED"
        prover.change([each for each in documents() if each.id != "faq-3"])
        prover.close()
        window = prover.scenario.api.get("/v1/windows/w1").content
        (tmp_path / "window.json").write_bytes(window)
        environment["RAGAUDIT_OWNER_API_KEY"] = prover.api_key
        first, second = shell(after, tmp_path, **environment).splitlines()
    [example] = [
        line.strip() for line in OWNERS_CHAPTER.splitlines() if line.startswith("    faq-3 is")
    ]
    expected = example.replace("shop", "one").replace("2026-11", "w1").removesuffix("...")
    assert first == second and first.startswith(expected)


def test_the_settings_are_settings_and_the_documents_are_lines() -> None:
    [example] = blocks(OWNERS_CHAPTER, "yaml")
    WindowSettings.model_validate({"privacy": "none", **yaml.safe_load(example)["window"]})
    assert json.dumps(["id", "text", "metadata", "vector"])[1:-1] in OWNERS_CHAPTER
