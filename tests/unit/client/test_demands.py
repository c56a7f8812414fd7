"""A client that demands something of its window or of answers is never given less in silence."""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import httpx
import pytest
from ragaudit.client.blocking import Client
from ragaudit.client.errors import AnswerRejected, LessThanDemanded
from ragaudit.client.options import Demands
from ragaudit.client.results import CheckedReceipt, SearchResult
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.ledger.messages.challenge import Countersignature
from ragaudit.ledger.messages.shown import ShownOpening, ShownWindow

Open = Callable[..., Client]


@lru_cache(maxsize=1)
def unnoised() -> tuple[IntegrityWindow, Any]:
    """A window without noise, played, and what its provider shows of it."""
    window = IntegrityWindow()
    window.play()
    _, salt, body = window.entries[0]
    shown = ShownWindow(
        window=window.window,
        state="open",
        policy=window.policy,
        policy_digest=window.policy.digest,
        countersignature=Countersignature.parse(window.countersignature()),
        opening=ShownOpening(salt, body),
        embedder=window.model.manifest(),
        activations=(),
        versions=(),
        epochs=() if window.policy.epochs else None,
    )
    return window, shown.to_json()


def serves_no_noise(provider: Any) -> str:
    """Have the provider show a window without noise; return its verifier's key."""
    window, shown = unnoised()
    provider.interfere = lambda call, reply: shown if call == "window" else reply
    return window.verifier_key.public.raw.hex()


def test_a_window_without_noise_is_refused_where_privacy_or_anchored_answers_are_demanded(
    opened: Open, options: Callable[..., Any], provider: Any
) -> None:
    key = serves_no_noise(provider)
    demands: list[tuple[dict[str, Any], str]] = [
        ({"privacy": "required"}, "adds no noise, and privacy is required"),
        ({"anchored": True}, "no answer in it is anchored"),
    ]
    for demand, said in demands:
        chosen = {**options(verifier_key=key), **demand}
        for call in ("register", "account"):
            with (
                Client("http://provider", provider.api_key, **chosen) as client,
                pytest.raises(LessThanDemanded, match=said),
            ):
                getattr(client, call)()
    assert set(provider.calls) == {"window"}  # nothing was registered or asked
    client = opened(verifier_key=key)
    assert not client.window.view.policy.noised
    assert not client.anchored  # a state directory alone demands nothing


def test_noise_from_a_published_seed_is_no_privacy(
    options: Callable[..., Any], provider: Any
) -> None:
    seeded = type(provider)(seed="published")
    chosen = options(
        transport=httpx.MockTransport(seeded.handle),
        verifier_key=seeded.policy.keys.verifier.raw.hex(),
    )
    with Client("http://provider", provider.api_key, **chosen) as client:
        assert client.window.view.policy.experiment_seed == "published"
    with (
        Client("http://provider", provider.api_key, **chosen, privacy="required") as client,
        pytest.raises(LessThanDemanded, match="published seed"),
    ):
        client.register()


def test_demands_that_nothing_knows_are_refused_at_once(opened: Open, provider: Any) -> None:
    shares: list[Any] = [-0.1, 1.1, float("nan"), True, "0.5"]
    demands: list[dict[str, Any]] = [{"privacy": "require"}, {"privacy": True}]
    for demand in (*demands, *({"most_withheld": share} for share in shares)):
        with pytest.raises(MalformedError, match="|".join(demand)):
            opened(**demand)
    assert provider.calls == []
    assert opened(privacy="required", most_withheld=0).search("what is it?").withheld == 0


def test_a_provider_cannot_lead_a_client_into_another_window(opened: Open, provider: Any) -> None:
    """The window is looked at once more while its activation is awaited: it must be the same."""
    _, other = unnoised()
    shown: list[Any] = []

    def interfere(call: str, reply: Any) -> Any:
        if call != "window":
            return reply
        shown.append(reply)
        if len(shown) == 1:
            return [{**json.loads(json.dumps(reply)), "activations": []}]
        return other

    provider.interfere = interfere
    client = opened(window=None, allow_unpinned=True, verifier_key=None)
    with pytest.raises(AnswerRejected, match="another policy than before"):
        client.search("what is it?")
    assert len(shown) == 2
    assert not {"promise", "query"} & set(provider.calls)


def test_an_answer_that_withholds_more_than_is_allowed_is_refused() -> None:
    window, _ = unnoised()
    files = [window.receipt_file(asked) for asked in window.asked]
    results = []
    for file in files:
        receipt = CheckedReceipt(file, [], None)
        results.append(SearchResult(file.answer.documents, receipt, 0, 0, receipt.withdrawn))
    counts = [(result.withheld, len(result.documents)) for result in results]
    assert (1, 2) in counts, counts  # the deleted row of the script
    for result in results:
        whole = result.withheld + len(result.documents)
        for share in (0, 0.25, 0.5, 1.0):
            demands = Demands.of({"most_withheld": share})
            if result.withheld <= share * whole:
                demands.check_answer(result)
                continue
            with pytest.raises(LessThanDemanded, match="rows are withheld") as caught:
                demands.check_answer(result)
            assert caught.value.result is result
        Demands.of({}).check_answer(result)
