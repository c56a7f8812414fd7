"""Policies that no regulator would audit: what they state is true, and says nothing."""

from collections.abc import Mapping
from typing import Any, Final

from ragaudit.lab.attacks.cheat import ServiceCheat
from ragaudit.lab.attacks.service.opening import AltersPolicy


class AcceptsEveryVector(AltersPolicy):
    """Every query vector is within the tolerance of every text's."""

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        return {"embedder_tolerance": 65_535}


class SamplesOfOne(AltersPolicy):
    """A sample finds a window in which everything is bad, and no other."""

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        loose = {"eta": "0.999", "minimum": 0}
        audit = {**document["audit"], "mode": "B", "beta": "0.999", "tenants": loose}
        return {"audit": {**audit, "submitters": {"by": "account", **loose}}}


class PromisesNothing(AltersPolicy):
    """Epsilon 50 at delta one in ten."""

    def changes(self, document: Mapping[str, Any], now: int) -> dict[str, Any]:
        return {"epsilon_acc": "50", "delta_acc": "0.1"}


CHEATS: Final = (
    ServiceCheat(
        name="tolerance-that-accepts-every-vector", family="POLICY",
        description="States an embedder tolerance that every vector keeps.",
        parts={"policy_builder": AcceptsEveryVector}, refused=True,
        checks=("policy",), reason="most_embedder_tolerance",
    ),
    ServiceCheat(
        name="samples-of-one", family="POLICY",
        description="States a beta and an eta with which one record stands for all.",
        parts={"policy_builder": SamplesOfOne}, refused=True,
        checks=("policy",), reason="most_beta",
    ),
    ServiceCheat(
        name="promise-that-is-none", family="POLICY",
        description="Promises epsilon 50 at delta 0.1, and keeps it.",
        parts={"policy_builder": PromisesNothing}, refused=True,
        checks=("policy",), reason="most_delta_acc",
    ),
)  # fmt: skip
