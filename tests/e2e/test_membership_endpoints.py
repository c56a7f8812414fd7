"""`ragaudit attack membership` asks services of ours: the prover's queries, and OpenAI's chat."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from ragaudit.encoding.errors import RefusedError
from ragaudit.lab.attacks.membership.endpoints import Caller, openai, ragaudit
from scenario import ProverScenario
from scope_windows import fill_documents, planted, start
from surface_app import NAMES, MemoryPort, serving, surface_app


def test_openais_chat_is_asked() -> None:
    with serving(surface_app(MemoryPort())) as port:
        url = f"http://127.0.0.1:{port}/v1"
        with closing(Caller(openai(url, NAMES["acme"]), "key-acme", 30)) as caller:
            answer, reply = caller.ask("Is it known?")
        assert (answer.text, answer.status) == ("acme: Is it known?", 200)
        assert reply["choices"][0]["message"]["content"] == answer.text
        with (
            closing(Caller(openai(url, NAMES["acme"]), "key-of-nobody", 30)) as caller,
            pytest.raises(RefusedError, match="answers 401"),
        ):
            caller.ask("Is it known?")


@pytest.mark.slow
def test_the_prover_is_asked(make_scenario: Callable[..., ProverScenario], tmp_path: Path) -> None:
    scenario = make_scenario()
    fill_documents(scenario, tmp_path)
    start(scenario, ["text"])
    own = {one.id: one.text for one in planted(tmp_path) if one.tenant == "acme"}
    with serving(scenario.api.app, lifespan="off") as port:
        template = ragaudit(f"http://127.0.0.1:{port}", "w1", 3)
        with closing(Caller(template, scenario.keys["ada"], 30)) as caller:
            answer, reply = caller.ask("canary document")
    assert len(answer.citations) == 3 and set(answer.citations) <= own.keys()
    assert all(own[name] in answer.text for name in answer.citations)
    # What a service says of its record and budgets stands beside the answer.
    assert reply.keys() > {"answer"}
