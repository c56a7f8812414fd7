"""A window whose questions are answered by keywords (DP-KSA), with the copying model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ragaudit.lab.generation.serving import keyword_manifest
from ragaudit.lab.generation.transformer import Transformer
from scenario import ProverScenario

TOKENS = 6
KEYWORDS: dict[str, Any] = {
    # So much that nothing is left to chance: what most voters name is what is released.
    "epsilon_choice": "22",
    "sigma": "1/16",
    "delta_test": "1/1000000",
    "delta_conversion": "1/1000000",
    "sizes": [1, 2, 3],
}
KEYWORD_CHANNEL: dict[str, Any] = {
    "epsilon": None,
    "epsilon_token": None,
    "keywords": KEYWORDS,
    "voters": 8,
    "tokens": TOKENS,
    "uses": 1,
}
"""Changes of `generation_channel.CHANNEL`."""
WITHIN_TERMS: dict[str, Any] = {
    # With a loss that still says something: that of two uses is about 6.
    **KEYWORD_CHANNEL,
    "keywords": {
        "epsilon_choice": "1",
        "sigma": "2",
        "delta_test": "1/1000000",
        "delta_conversion": "1/1000000",
        "sizes": [1, 2, 3],
    },
    "uses": 2,
}
"""Changes of `generation_channel.WITHIN_TERMS`."""


def write_keyword_model(folder: Path, model: Transformer) -> dict[str, str]:
    """Write the manifest; return the environment that names it."""
    folder.mkdir(exist_ok=True)
    path = folder / "whole answers.json"
    path.write_bytes(keyword_manifest(model, TOKENS).encode())
    return {"RAGAUDIT_PROVER__GENERATOR__MANIFEST_FILE": str(path)}


@pytest.fixture
def keyword_channel(
    make_scenario: Callable[..., ProverScenario],
    model: Transformer,
    model_url: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> ProverScenario:
    """A prover with the copying model, asked for whole answers; its pauses move its clock."""
    monkeypatch.setenv("RAGAUDIT_PROVER__GENERATOR__URL", model_url)
    for name, value in write_keyword_model(tmp_path / "model", model).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAGAUDIT_PROVER__SURFACES__ENABLED", '["openai"]')
    monkeypatch.setenv("RAGAUDIT_PROVER__SURFACES__COLLECTIONS", '{"records": "one"}')
    scenarios: list[ProverScenario] = []

    async def pause(seconds: float) -> None:
        scenarios[0].clock.now += round(1000 * seconds)

    scenarios.append(make_scenario(pause=pause))
    return scenarios[0]
