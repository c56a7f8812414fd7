"""The handover in parts, so that whoever is interrupted goes on (docs/spec/08-services.md §8.3)."""

import tempfile
from typing import BinaryIO, cast

from ragaudit.encoding.errors import Conflict, MalformedError, RejectedError
from ragaudit.ledger.messages.bodies import HeldParts, RecordsBody
from ragaudit.ledger.messages.items import RECORDS
from ragaudit.serving.bodies import MEMORY_BYTES, Body
from ragaudit.verifier.service import handover_parts as parts
from ragaudit.verifier.service import windows
from ragaudit.verifier.service.database import Origin
from ragaudit.verifier.service.handover import Handover, check_in_time


class PartedHandover(Handover):
    """Takes the handover as a whole, and in parts."""

    def put_part(self, origin: Origin, number: int, body: Body) -> None:
        """Keep a part of the handover.

        Args:
            number: of the part, from 0.
            body: frames of the entries from `PART_ENTRIES` times the number on.

        Raises:
            MalformedError: see `read_handover`; too many or no frames.
            RejectedError: more entries than the log has.
            Conflict: another part of this number was given, the one before was not, or the handover
                was taken.
            CapReached: more bytes than a handover may have.
            TooEarly, TooLate: as for `put_records`.
        """
        parts.check(body.file, number, self.most_entries(origin))
        limit = self.records_bytes(origin)
        with self._database.write() as transaction:
            window = windows.get(transaction.connection, origin)
            if window.records is not None:
                raise Conflict("the log was handed over", where=origin)
            check_in_time(transaction, window)
            parts.put(transaction, origin, number, body, limit)

    def held_parts(self, origin: Origin) -> HeldParts:
        """Return how much of a handover there is."""
        with self._database.read() as connection:
            window = windows.demand_countersigned(windows.get(connection, origin))
            held = parts.held(connection, origin)
        return HeldParts(len(held), window.records is not None)

    def put_parts(self, origin: Origin, request: RecordsBody) -> None:
        """Take the parts as the handover.

        Args:
            request: which they are.

        Raises:
            As `put_records`; RejectedError also if the parts have another digest, Conflict if there
            are not so many. Parts that are refused are forgotten.
        """
        with self._database.read() as connection:
            item = windows.find_item(connection, origin, RECORDS)
            held = parts.held(connection, origin)
        if item is not None:
            if item.digest != request.digest:
                raise Conflict("another handover was given", where=origin)
            return
        if len(held) != request.parts:
            raise Conflict(f"{len(held)} parts", where=origin, expected=f"{request.parts} parts")
        with tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES) as file:
            with self._database.read() as connection:
                body = parts.joined(connection, origin, held, cast(BinaryIO, file))
            try:
                if body.digest != request.digest:
                    raise RejectedError("the parts have another digest", where="digest")
                self.put_records(origin, body)
            except (MalformedError, RejectedError):
                with self._database.write() as transaction:
                    parts.forget(transaction, origin)
                raise
