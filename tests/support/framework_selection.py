"""What the noise of a window selected, by an obvious route: all rows with all noise, sorted."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from framework_corpus import passes
from framework_scene import Scene
from ragaudit.circuits.noise import noise_key, sample_noise
from ragaudit.ledger.messages.receipts import ReceiptFile


def selection(
    scene: Scene, file: ReceiptFile, rows: Mapping[str, Mapping[str, Any]]
) -> list[tuple[int, str]]:
    """Return T of a record, positions and ids, in the order of the index.

    Args:
        file: of the receipt.
        rows: metadata by id, of what the store held when the record's version was read.
    """
    live = scene.scenario.service.open_windows.get("w1")
    record = file.public.query
    index = live.index_of(record.tenant, record.version)
    key = noise_key(
        live.seed.key(record.slot, record.counter),
        window=record.window,
        tenant=record.tenant,
        version=record.version,
        pseudonym=record.pseudonym,
        epoch=record.epoch,
        slot=record.slot,
        counter=record.counter,
        activation_randomness=live.activation_randomness(record.activation),
        nonce=b"",
    )
    noise = sample_noise(live.noise_table, key, index.count)
    e = np.array(file.private.openings.embedding, dtype=np.int64)
    noised = [int(x) for x in index.vectors.astype(np.int64) @ e + noise]
    # Of a deleted document a row is left that takes part, and has no column that a filter passes.
    allowed = [
        at
        for at, name in enumerate(index.ids)
        if not file.request.filter or (name in rows and passes(rows[name]))
    ]
    ranked = sorted(allowed, key=lambda at: -noised[at])
    next_one = noised[ranked[record.top_k]]
    selected = sorted(at for at in ranked[: record.top_k] if noised[at] > next_one)
    return [(at, index.ids[at]) for at in selected]
