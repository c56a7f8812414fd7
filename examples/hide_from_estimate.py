"""Twelve accounts of forty ask about one document in directions of their own, and take turns.

Run it with ``python hide_from_estimate.py``.
"""

import numpy as np
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.sketch import sketches
from ragaudit.privacy.coalition import Record as Sketched
from ragaudit.privacy.coalition import estimate, estimate_direction, hamming_threshold

accounts, hidden, rate, bits = 40, 12, 30, 256
asked = np.random.default_rng(7).standard_normal((accounts, rate, 128))
asked /= np.linalg.norm(asked, axis=2, keepdims=True)
target, *aside = np.linalg.qr(asked[0, : hidden + 1].T)[0].T
asked[:hidden] = ((target + np.array(aside)) / np.sqrt(2))[:, np.newaxis]

rows = quantise_rows(asked.reshape(-1, 128)).astype(np.int16)
records = [
    Sketched(bytes([place // rate]), 3_600_000 * (place // rate), sketch.tobytes())
    for place, sketch in enumerate(sketches(rows, bytes(32), bits))
]
threshold = hamming_threshold("0.8", bits)
assert estimate(records, tau=600_000, threshold=threshold).k_hat == 1
worth = hidden * (target @ asked[0, 0]) ** 2
found = estimate_direction(records, limit=rate)
print(f"worth {worth:.1f} accounts that ask nothing else; estimated: {found.k_hat}")
assert worth <= found.k_hat <= hidden
assert found.clusters[0] == tuple(bytes([account]) for account in range(hidden))
