"""Terms of a generation channel, and one question of it with everything that is logged."""

from typing import Any

from integrity_scene import NOISE, policy_value
from ragaudit.encoding.digests import salted
from ragaudit.ledger.messages.entries import Charge, Generated
from ragaudit.ledger.messages.receipts import (
    GeneratedAnswer,
    GeneratedPrivate,
    GenerationRequest,
)
from ragaudit.ledger.messages.requests import Openings, embedding_digest

D = bytes(range(32))
SALT = b"s" * 32
GENERATION: dict[str, Any] = {
    "mechanism": "murag",
    "answerer": {
        "kind": "dp-rag",
        "epsilon_token": "1/2",
        "voters": 4,
        "slots_per_voter": 2,
        "threshold": None,
        "tokens": 8,
    },
    "epsilon": "3/2",
    "uses": 3,
    "threshold": 9000,
    "charges": {"prove": "sampled", "group": 100},
    "replay": {"differing_votes": 2},
    "generator": {
        "format": "ragaudit/v1/generator",
        "kind": "files",
        "model": "copy",
        "files": {"weights.npz": "08" * 32},
        "vocabulary": {"size": 3, "end": 2, "digest": "07" * 32},
        "prompt": {"template": "{documents}\n{question}", "between": "\n"},
        "keywords": None,
        "decoding": "greedy",
        "probes": [{"question": "what ?", "answer": ""}],
    },
    "answer_delay_seconds": 2,
    "reuse": False,
}
KEYWORDS: dict[str, Any] = {
    "answerer": {
        "kind": "dp-ksa",
        "epsilon_choice": "1/2",
        "sigma": "8",
        "delta_test": "1/1000000",
        "delta_conversion": "1/1000000",
        "voters": 8,
        "sizes": [1, 2, 3],
        "stop_words": ["a", "the"],
        "tokens": 12,
        "final": "model",
    },
    "epsilon": "2",
    "generator": {
        **GENERATION["generator"],
        "vocabulary": None,
        "keywords": {"template": "{documents}: {question}", "between": " "},
    },
}
"""What of `GENERATION` is otherwise where DP-KSA answers."""
CHARGE = Charge(D, "w", "acme", 1, 100, D, D, 1, 2, 3, 1, 4000, D, D, D, 0, 9000, D)
REQUEST = GenerationRequest("what?")
ANSWER = GeneratedAnswer("a", (0, 2), 1)
OPENINGS = Openings(
    query="what?", filter="", embedding=(3, 4), sketch=b"sketch",
    salt_q=SALT, salt_e=SALT, salt_f=SALT, salt_s=SALT,
)  # fmt: skip
PRIVATE = GeneratedPrivate(OPENINGS, SALT)
CHARGE_OF_OPENINGS = Charge(
    *(D, "w", "acme", 1, 100, salted(SALT, ""), D, 1, 2, 3, 1, 4000),
    salted(SALT, OPENINGS.question.data),
    embedding_digest(SALT, (3, 4)),
    salted(SALT, b"sketch"),
    *(0, 9000, D),
)
GENERATED = Generated("w", "acme", 7, 4001, None, ANSWER.digest(SALT))


def policy_with(**changes: Any) -> dict[str, Any]:
    """A policy with noise, and a generation channel with these changes, as JSON."""
    value = policy_value(**NOISE, versions=False)
    return {**value, "generation": {**GENERATION, **changes}}
