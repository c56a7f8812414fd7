"""A small honest window whose rows are sampled, played against a running verifier service."""

from __future__ import annotations

from typing import Any

from ragaudit.encoding import canonical_json
from ragaudit.lab.scenario.owned import RowsWindow
from ragaudit.ledger.messages.challenge import Challenge
from service_integrity_window import ServiceIntegrityWindow


class ServiceRowsWindow(ServiceIntegrityWindow, RowsWindow):
    """A window without noise, of whose indexes the service samples rows."""

    challenged: Challenge

    def until_challenge(self) -> None:
        """Play the window up to the challenge, which nobody has answered."""
        self.play()
        self.submit()
        self.hand_over()
        self.reach_sampling()
        shown = self.send("GET", "/challenge").content
        self.challenged = Challenge.from_json(canonical_json.loads(shown))

    def respond(self) -> list[int]:
        """Answer for the sampled records alone."""
        by_index = {asked.index: asked for asked in self.asked}
        sampled = sorted(self.challenged.sampled)
        for index in sampled:
            self.send("PUT", f"/challenge/{index}", self.response(by_index[index]))
        return sampled

    def opening_of(self, tenant: str) -> bytes:
        """The due response for the rows of a tenant."""
        return self.open_rows(tenant, self.challenged.sampled_rows[tenant])

    def put(self, tenant: str, body: bytes) -> Any:
        """The answer to a response for a tenant's rows."""
        target = f"/v1/windows/{self.window}/challenge/rows/{tenant}"
        return self.signed("PUT", target, body)
