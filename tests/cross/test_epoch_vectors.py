"""Entries of seed epochs and their noise keys against vectors that nothing of ours made."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from for_each import for_each
from ragaudit.ledger.errors import MalformedRecord
from ragaudit.ledger.messages.entries import Epoch, entry_leaf_data, parse_body
from ragaudit.prover.randomness import SeedTree

VECTORS = json.loads((Path(__file__).parents[1] / "vectors/epochs.json").read_text())
ENTRIES = [*VECTORS["entries"], *VECTORS["unnoised"]]


def epoch_of(entry: Any) -> Epoch:
    return Epoch(
        VECTORS["window"],
        entry["epoch"],
        entry["reason"],
        bytes.fromhex(entry["previous_root"]),
        bytes.fromhex(entry["seed_root"]),
        entry["size"],
        bytes.fromhex(entry["root"]),
        entry["time"],
    )


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry["time"]))
def test_entries(entry: Any) -> None:
    body, epoch = bytes.fromhex(entry["body"]), epoch_of(entry)
    assert epoch.encode() == body and parse_body("epoch", body) == epoch
    leaf = entry_leaf_data(bytes.fromhex(entry["salt"]), epoch)
    assert leaf.hex() == entry["leaf"]


@pytest.mark.parametrize("seed", VECTORS["seeds"], ids=lambda seed: str(seed["epoch"]))
def test_keys(seed: Any) -> None:
    tree = SeedTree(
        VECTORS["window"],
        bytes.fromhex(seed["secret"]),
        VECTORS["slots"],
        VECTORS["queries"],
        seed["epoch"],
    )
    assert tree.commit().root.hex() == seed["root"]
    for slot, keys in enumerate(seed["keys"]):
        for counter, key in enumerate(keys):
            assert tree.key(slot, counter).hex() == key
            assert tree.open(slot, counter).key.hex() == key


@for_each(
    "change",
    [
        {"epoch": 1}, {"reason": ""}, {"reason": "schedule"}, {"previous_root": b""},
        {"seed_root": b""}, {"seed_root": b"short"}, {"root": b""}, {"size": -1}, {"time": -1},
        {"window": "W"},
    ],
)  # fmt: skip
def test_no_entries(change: Any) -> None:
    with pytest.raises(MalformedRecord):
        replace(epoch_of(ENTRIES[0]), **change)
