"""Cheats around disputes and anchors in windows that the stage does not play."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ragaudit.circuits.selection import scores
from ragaudit.lab.attacks.cheat import ConstructedCheat
from ragaudit.lab.attacks.constructed.window import Window
from ragaudit.lab.attacks.terms import SMALL_TERMS
from ragaudit.verifier.terms import Terms


@dataclass
class NoiselessAndDisputed(Window):
    """Mode B: the true top K of every record, and a dispute about every record."""

    mode: str = "B"

    def select(
        self,
        tenant: str,
        embedding: npt.NDArray[np.int16],
        noise: npt.NDArray[np.int64],
        top_k: int,
    ) -> tuple[int, ...]:
        best = np.argsort(-scores(self.indices[tenant].vectors, embedding), kind="stable")
        return tuple(sorted(best[:top_k].tolist()))

    def disputes(self) -> list[dict[str, Any]]:
        return [self.dispute(asked) for asked in self.asked]


DEMANDS_CHAINS: Final = Terms.of({**SMALL_TERMS.to_json(), "least_anchored_share": "0.5"})


@dataclass
class AnchoredByTheProvider(Window):
    """The chains are the provider's own; the accounts never heard of them."""

    terms: Terms = DEMANDS_CHAINS

    def statements(self) -> list[dict[str, Any]]:
        return []


CHEATS: Final = (
    ConstructedCheat(
        name="noiseless-and-disputed-in-mode-b", family="SELECTION",
        description="Retrieves without noise, every record of it disputed, and is sampled.",
        why="the stage plays mode A",
        window=NoiselessAndDisputed,
        checks=("selection",), reason="selection argument does not hold",
    ),
    ConstructedCheat(
        name="anchored-by-the-provider", family="REGISTRATION",
        description="Registers plain accounts with nonce chains that it made itself.",
        why="the stage's terms demand no share; without a demand these accounts count as plain",
        window=AnchoredByTheProvider,
        checks=("nonces",), reason="of accounts that showed their chain",
    ),
)  # fmt: skip
