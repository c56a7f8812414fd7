"""A small honest window without noise, played against a running verifier service."""

from __future__ import annotations

from ragaudit.lab.scenario.integrity import IntegrityWindow
from ragaudit.ledger.messages.entries import Version
from service_window import ServiceWindow


class ServiceIntegrityWindow(ServiceWindow, IntegrityWindow):
    """A window without noise, whose verifier is the service."""

    uploads = announces = True

    def announce(self, entry: Version) -> None:
        super().announce(entry)
        index = len(self.entries) - 1
        kind, salt, body = self.entries[index]
        if not self.announces:
            self.upload(entry)
            return
        document = {"index": index, "kind": kind, "salt": salt.hex(), "body": body.hex()}
        self.send("POST", "/entries", {"entries": [document]})
        self.upload(entry)

    def upload(self, entry: Version) -> None:
        if self.uploads:
            self.send("PUT", self.place(entry), self.version_bytes(entry))

    def place(self, entry: Version, version: int | None = None) -> str:
        return f"/tenants/{entry.tenant}/versions/{version or entry.version}"

    def version_bytes(self, entry: Version) -> bytes:
        return self.later[entry.tenant, entry.version].commitment.encode()

    def finish(self) -> None:
        self.submit()
        self.hand_over()
        self.reach_sampling()
        self.respond()
