"""What V's own clock says about when the log's entries were made (check 9).

Entries name times of the provider's clock. V knows when it cosigned the last checkpoint before an
entry and the first one that covers it, and when it took a claim.
"""

from bisect import bisect_right

from ragaudit.encoding.errors import RejectedError
from ragaudit.encoding.times import rfc3339
from ragaudit.verifier.procedure.claims import claimed_records
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import MissingInput
from ragaudit.verifier.procedure.log_view import LoggedRecord, LoggedRegistration

_SECOND = 999  # a cosignature at second t was made up to 999 ms later


class TimeBounds:
    """Bounds on the times of entries; all in Unix milliseconds."""

    def __init__(self, context: Context) -> None:
        known = context.checkpoints
        final = context.log.tree.size
        inside = [each for each in known if each.size < final]
        self._sizes = [*(each.size for each in inside), final]
        self._cosigned = [*(1000 * each.time for each in inside), 1000 * context.final_time]
        policy = context.policy
        self._opened = context.countersignature.time
        if self._opened >= 1000 * min(policy.start, policy.activation_instants[0]):
            raise MissingInput("policy", "it was countersigned too late")
        self._end, self._last_promise = 1000 * policy.end, policy.last_promise
        self._skew = 1000 * policy.clock_skew_seconds
        self._merge = 1000 * policy.merge_delay_seconds
        self._life = 1000 * policy.promise_life_seconds
        self._claimed = claimed_records(context)

    def check_record(self, each: LoggedRecord) -> None:
        """Check that V's clock confirms the record's time.

        Raises:
            RejectedError: it does not.
        """
        record = each.record
        anchored = record.nonce is not None
        if anchored and record.time > self._last_promise:
            raise RejectedError(
                f"promised at {rfc3339(record.time)}, when no account could claim any more",
                expected=f"{rfc3339(self._last_promise)} at the latest",
            )
        if self._claimed.get((record.pseudonym, record.counter)) == record.promised():
            self._check_not_later(record.time, each.index)
        else:
            self._check_around(record.time, each.index, self._life if anchored else 0)

    def check_registration(self, each: LoggedRegistration) -> None:
        """Check that V's clock confirms the registration's time.

        Raises:
            RejectedError: it does not.
        """
        self._check_around(each.registration.time, each.index, 0)

    def check_close(self, time: int, index: int) -> None:
        """Check that the log was closed after the window's end, at the time that it says.

        Args:
            time: of the close entry, Unix milliseconds.
            index: of the close entry.

        Raises:
            RejectedError: it was not.
        """
        if time < self._end - self._skew:
            raise RejectedError(
                f"at {rfc3339(time)}, before the window's end", expected=f"{rfc3339(self._end)}"
            )
        self._check_not_later(time, index)
        self._check_not_earlier(time, index, 0)

    def _check_around(self, time: int, index: int, life: int) -> None:
        self._check_not_later(time, index)
        self._check_not_earlier(time, index, life)
        covered = self._cosigned[self._covering(index)]
        latest = time + self._merge + self._skew + life
        if covered > latest:
            raise RejectedError(
                f"at {rfc3339(time)}, but no checkpoint covered it until {rfc3339(covered)}",
                expected=f"one by {rfc3339(latest)}",
            )

    def _check_not_later(self, time: int, index: int) -> None:
        latest = self._cosigned[self._covering(index)] + _SECOND + self._skew
        if time > latest:
            raise RejectedError(
                f"at {rfc3339(time)}, but it was in the log before",
                expected=f"{rfc3339(latest)} at the latest",
            )

    def _check_not_earlier(self, time: int, index: int, life: int) -> None:
        covering = self._covering(index)
        before = self._cosigned[covering - 1] if covering else self._opened
        earliest = before - self._skew - life
        if time < earliest:
            raise RejectedError(
                f"at {rfc3339(time)}, but it was not in the log then",
                expected=f"{rfc3339(earliest)} at the earliest",
            )

    def _covering(self, index: int) -> int:
        """Number of the first checkpoint that covers the entry."""
        return bisect_right(self._sizes, index)
