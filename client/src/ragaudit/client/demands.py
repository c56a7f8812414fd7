"""What a caller demands of a window and of its answers (docs/spec 8.10).

A provider decides which window it serves and which rows it gives out. Whoever demanded more than
that gets an error, never the lesser thing without a word.
"""

import logging
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Self

from ragaudit.client.errors import LessThanDemanded
from ragaudit.encoding.errors import MalformedError
from ragaudit.ledger.messages.schedule_terms import time_to_hand_in

if TYPE_CHECKING:
    from ragaudit.client.options import ClientOptions
    from ragaudit.client.results import SearchResult
    from ragaudit.client.window import Window

__all__ = ["Demands"]

REQUIRED: Final = "required"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Demands:
    """What the options of a client demand; nothing by default.

    Attributes:
        privacy: noise that nobody can predict.
        anchored: a nonce of the account in the noise of its answers.
        most_withheld: share of an answer's rows that may be withheld, 0..1; None: any.
    """

    privacy: bool = False
    anchored: bool = False
    most_withheld: Fraction | None = None

    @classmethod
    def of(cls, options: "ClientOptions") -> Self:
        """Return the demands of a client's options.

        Raises:
            MalformedError: a value that demands nothing known.
        """
        privacy, most = options.get("privacy"), options.get("most_withheld")
        if privacy not in (None, REQUIRED):
            raise MalformedError(f"{privacy!r}", where="privacy", expected=f"{REQUIRED!r} or None")
        # Not isinstance: True would allow everything, and NaN would refuse nothing.
        if most is not None and not (type(most) in (int, float) and 0 <= most <= 1):
            raise MalformedError(f"{most!r}", where="most_withheld", expected="0..1")
        share = None if most is None else Fraction(most)
        return cls(privacy == REQUIRED, options.get("anchored") is True, share)

    def check_window(self, window: "Window") -> None:
        """Check that a window can give what is demanded; warn of one that leaves no time.

        Raises:
            LessThanDemanded: it adds no noise, or noise from a published seed.
        """
        policy = window.view.policy
        if self.privacy and not policy.noised:
            raise LessThanDemanded(
                "this window adds no noise, and privacy is required",
                where=window.name,
                expected="a window with noise",
            )
        if self.privacy and policy.experiment_seed is not None:
            raise LessThanDemanded(
                "the noise of this window follows from a published seed, and privacy is required",
                where=window.name,
                expected="a window whose policy has no experiment_seed",
            )
        # Nothing is drawn there that a chain could keep the provider from drawing again.
        if self.anchored and not policy.noised:
            raise LessThanDemanded(
                "this window adds no noise, so no answer in it is anchored",
                where=window.name,
                expected="a window with noise, or no demand for anchored=True",
            )
        seconds = policy.sampling_instant - policy.end
        needed = time_to_hand_in(policy.merge_delay_seconds, policy.clock_skew_seconds)
        if seconds < needed:
            _log.warning(
                "window %s: the sample is drawn %d s after its end; handing in the receipts of the "
                "last answers needs %d s. An answer that is in no log may stay unnoticed",
                policy.window, seconds, needed,
            )  # fmt: skip

    def check_answer(self, result: "SearchResult[Any]") -> None:
        """Check that an answer withholds no more than is allowed.

        Raises:
            LessThanDemanded: it withholds more; the answer is in it.
        """
        if self.most_withheld is None:
            return
        rows = result.withheld + len(result.documents)
        if result.withheld > self.most_withheld * rows:
            raise LessThanDemanded(
                f"{result.withheld} of {rows} rows are withheld",
                where=f"answer {result.receipt.counter}",
                expected=f"a share of at most {float(self.most_withheld):g}",
                result=result,
            )
