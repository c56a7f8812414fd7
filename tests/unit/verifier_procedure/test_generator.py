"""The language model that a verifier has of its own: a service, asked for probes and votes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from generation_channel import model, model_url
from judged_windows import judged
from procedure_cases import use_cached_table
from ragaudit.encoding.errors import MalformedSettings, UnavailableError
from ragaudit.lab.generation.serving import MODEL
from ragaudit.lab.generation.voters import VOCABULARY
from ragaudit.lab.scenario.generating import CopyGenerator, GeneratingWindow
from ragaudit.ledger.messages.verdict import Status
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.models import GeneratorService, committed_generator
from ragaudit.verifier.settings import GeneratorSettings, load

__all__ = ["model", "model_url"]

use_cached_table()


@pytest.fixture(scope="module")
def window() -> tuple[GeneratingWindow, dict[str, bytes]]:
    made = GeneratingWindow()
    return made, made.items()


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "vocabulary.json"
    path.write_text(json.dumps(list(VOCABULARY.tokens)))
    return path


@pytest.fixture
def own(model_url: str, vocabulary: Path) -> GeneratorSettings:
    return GeneratorSettings(url=model_url, models=(MODEL,), vocabulary_file=vocabulary)


def statuses(
    window: tuple[GeneratingWindow, dict[str, bytes]], settings: GeneratorSettings | None
) -> tuple[str, ...]:
    made, items = window
    service = None if settings is None else GeneratorService(settings)
    with committed_generator(Evidence.of(items), service) as generator:
        outcome = judged(made, items, generator=generator)
    found = [str(outcome.check(each).status) for each in ("generator", "replay")]
    return str(outcome.result), *found


def test_the_committed_model_is_asked_over_http(
    window: tuple[GeneratingWindow, dict[str, bytes]], own: GeneratorSettings
) -> None:
    assert statuses(window, own) == ("PASS", "PASS", "PASS")


def test_a_model_that_is_not_believed_or_has_other_tokens_says_nothing(
    window: tuple[GeneratingWindow, dict[str, bytes]], own: GeneratorSettings, tmp_path: Path
) -> None:
    left_open = ("CONDITIONAL", "NOT ESTABLISHED", "NOT ESTABLISHED")
    assert statuses(window, None) == left_open
    assert statuses(window, own.model_copy(update={"models": ("other",)})) == left_open
    for tokens in (["a", "b"], list(VOCABULARY.tokens)[::-1]):
        path = tmp_path / "other.json"
        path.write_text(json.dumps(tokens))
        assert statuses(window, own.model_copy(update={"vocabulary_file": path})) == left_open


def test_a_service_that_is_away_says_nothing(
    window: tuple[GeneratingWindow, dict[str, bytes]], own: GeneratorSettings
) -> None:
    away = own.model_copy(update={"url": "http://127.0.0.1:9/v1"})
    assert statuses(window, away) == ("CONDITIONAL", "NOT ESTABLISHED", "NOT ESTABLISHED")


class Stops(CopyGenerator):
    """A model that answers probes, and nothing else."""

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> list[int | None]:
        if len(documents) > 1:
            raise UnavailableError("away", where="generator")
        return super().next_tokens(question, documents, answer)


class Mute(CopyGenerator):
    """A model of which some voters give nothing."""

    def next_tokens(
        self, question: str, documents: Sequence[tuple[str, ...]], answer: Sequence[int]
    ) -> list[int | None]:
        public, *votes = super().next_tokens(question, documents, answer)
        return [public, *(None for _ in votes)]


@pytest.mark.parametrize("kind", [Stops, Mute])
def test_what_the_own_model_did_not_say_accuses_nobody(
    window: tuple[GeneratingWindow, dict[str, bytes]], kind: type[CopyGenerator]
) -> None:
    made, items = window
    replay = judged(made, items, generator=kind()).check("replay")
    assert replay.status is Status.NOT_ESTABLISHED
    assert "the model at hand did not answer" in replay.reason


def test_settings_name_files_beside_them(tmp_path: Path, vocabulary: Path) -> None:
    path = tmp_path / "verifier.yaml"
    (tmp_path / "tokens.json").write_bytes(vocabulary.read_bytes())
    path.write_text(
        "name: regulator.example/cosigner\ndata: data\nsecrets: secrets\ngenerator:\n"
        "  url: http://127.0.0.1:1/v1\n  models: [copy]\n  vocabulary_file: tokens.json\n"
    )
    found = load(path).generator
    assert found is not None
    assert found.vocabulary_file == tmp_path / "tokens.json"
    assert GeneratorService(found).has("copy")


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "tokens.json"


@pytest.mark.parametrize("content", [None, "{", "{}", "[1]"])
def test_a_vocabulary_that_is_none_is_refused_at_once(
    files: Path, content: str | None, own: GeneratorSettings
) -> None:
    if content is not None:
        files.write_text(content)
    changed: dict[str, Any] = {"vocabulary_file": files}
    with pytest.raises(MalformedSettings, match=r"generator: .*tokens\.json"):
        GeneratorService(own.model_copy(update=changed))
