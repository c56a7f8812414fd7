"""The chain of windows: every link is the end that an earlier window had (spec 8.11)."""

import base64
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from for_each import for_each
from ragaudit.encoding import canonical_json
from ragaudit.encoding.errors import MalformedError, RejectedError
from ragaudit.encoding.signing import PublicKey
from ragaudit.lab.scenario.policy import seeded
from ragaudit.ledger.messages.window_chain import WindowChain
from vector_scripts import VECTORS, script

VECTOR: dict[str, Any] = json.loads((VECTORS / "chain.json").read_bytes())
VERIFIER = PublicKey.from_raw(bytes.fromhex(VECTOR["verifier"]))
VALUE: dict[str, Any] = json.loads(VECTOR["chain"])
MADE = script("make_chain")


def test_a_chain_of_the_specification_is_read_and_holds() -> None:
    chain = WindowChain.parse(VECTOR["chain"].encode())
    links = chain.verify([VERIFIER])
    assert [(link.window, link.size, link.continues) for link in links] == [
        ("w1", 5, None), ("w2", 6, "w1"), ("w3", None, "w2"),
    ]  # fmt: skip
    assert [link.size for link in links] == VECTOR["sizes"]
    assert chain.verify() == links == chain.verify([seeded("another").public, VERIFIER])
    assert chain.encode().decode() == VECTOR["chain"]
    assert WindowChain(chain.provider, ()).verify([VERIFIER]) == ()


def test_a_window_may_continue_another_one_than_the_last() -> None:
    first, end = MADE.chained("w1", 0, None)
    windows = [first, MADE.chained("w2", 1, end)[0], MADE.chained("w3", 2, end)[0]]
    chain = WindowChain.from_json({**VALUE, "windows": windows})
    assert [link.continues for link in chain.verify([VERIFIER])] == [None, "w1", "w1"]


def test_a_window_that_begins_anew_says_so() -> None:
    windows = [MADE.chained("w1", 0, None)[0], MADE.chained("w2", 1, None)[0]]
    chain = WindowChain.from_json({**VALUE, "windows": windows})
    assert [link.continues for link in chain.verify([VERIFIER])] == [None, None]


def left_out() -> Any:
    return VALUE["windows"][1:]


def turned() -> Any:
    return VALUE["windows"][1::-1]


def doubled() -> Any:
    return [VALUE["windows"][0], *VALUE["windows"]]


def one_key() -> Any:
    """Two logs under one key."""
    return [MADE.chained("w1", 0, None)[0], MADE.chained("w2", 1, None, "log w1")[0]]


def not_ended() -> Any:
    return [{**VALUE["windows"][0], "proof": None}, VALUE["windows"][1]]


def another_end() -> Any:
    """w2 continues a checkpoint that w1's log signed, and that is not its end."""
    earlier = MADE.note(f"{MADE.PROVIDER}/ragaudit/w1", [MADE.leaf(b"x")], "log w1", 1_800_000_000)
    return [VALUE["windows"][0], MADE.chained("w2", 1, earlier)[0]]


def end_of_nobody() -> Any:
    """w2 continues a checkpoint of w1's origin that another key signed."""
    forged = MADE.note(f"{MADE.PROVIDER}/ragaudit/w1", [MADE.leaf(b"x")], "log w9", 1_800_000_000)
    return [VALUE["windows"][0], MADE.chained("w2", 1, forged)[0]]


def changed(number: int, **members: Any) -> Callable[[], Any]:
    def windows() -> Any:
        found = copy.deepcopy(VALUE["windows"])
        found[number] |= members
        return found

    return windows


def other_policy() -> Any:
    found = copy.deepcopy(VALUE["windows"])
    found[0]["policy"]["retry_seconds"] = 59
    return found


def other_leaf() -> Any:
    """A proof of another entry of the same log."""
    found = copy.deepcopy(VALUE["windows"])
    found[0]["proof"] = found[0]["proof"].replace("index 0", "index 1")
    return found


def other_path() -> Any:
    found = copy.deepcopy(VALUE["windows"])
    lines = found[0]["proof"].split("\n")
    lines[2] = base64.b64encode(bytes(32)).decode()
    found[0]["proof"] = "\n".join(lines)
    return found


FALSE: dict[str, tuple[Callable[[], Any], str]] = {
    "a window left out": (left_out, "not listed before it"),
    "another order": (turned, "not listed before it"),
    "a window twice": (doubled, "for the second time"),
    "one key for two logs": (one_key, "for the second time"),
    "a continued window shown as open": (not_ended, "not ended"),
    "another end than the one continued": (another_end, "another end"),
    "an end that the log did not sign": (end_of_nobody, ""),
    "a policy that was not countersigned": (other_policy, "another policy"),
    "the countersignature of another window": (
        changed(0, countersignature=VALUE["windows"][1]["countersignature"]), "another window",
    ),
    "the opening of another window": (
        changed(0, opening=VALUE["windows"][1]["opening"]), "another opening",
    ),
    "a proof of another log": (changed(0, proof=VALUE["windows"][1]["proof"]), "another log"),
    "a proof of another entry": (other_leaf, "a proof of leaf 1"),
    "a tampered path": (other_path, "another root"),
}  # fmt: skip


@for_each("lie", FALSE)
def test_a_false_chain_is_rejected(lie: str) -> None:
    windows, words = FALSE[lie]
    chain = WindowChain.from_json({**VALUE, "windows": windows()})
    with pytest.raises(RejectedError, match=words or "signature"):
        chain.verify([VERIFIER])


def test_another_verifiers_windows_are_rejected() -> None:
    chain = WindowChain.from_json(VALUE)
    with pytest.raises(RejectedError, match="window 0: another verifier's"):
        chain.verify([seeded("another").public])


def test_another_providers_windows_are_rejected() -> None:
    chain = WindowChain.from_json({**VALUE, "provider": "other.example"})
    with pytest.raises(RejectedError, match="of another provider"):
        chain.verify([VERIFIER])


@for_each(
    "change",
    [
        {"windows": [{**VALUE["windows"][0], "policy": {}}]},
    ],
)
def test_another_form_is_malformed(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        WindowChain.parse(canonical_json.dumps({**VALUE, **change}))


def test_a_proof_that_is_none_is_malformed() -> None:
    windows = [{**VALUE["windows"][0], "proof": "any"}]
    with pytest.raises(MalformedError, match="window 0"):
        WindowChain.from_json({**VALUE, "windows": windows}).verify([VERIFIER])
