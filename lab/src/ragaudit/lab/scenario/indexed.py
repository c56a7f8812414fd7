"""The window without noise whose log ends with an account index (docs/spec/05-records.md §5.14)."""

from typing import Any

from ragaudit.lab.scenario.integrity import IntegrityWindow


class IndexedWindow(IntegrityWindow):
    """`IntegrityWindow`, with a policy that asks for the index."""

    def document(self, keys: dict[str, str | None], changes: dict[str, Any]) -> dict[str, Any]:
        return {**super().document(keys, changes), "account_index": True}
