"""Check selection: other noise, other rows, other rules than the mechanism has."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import httpx
import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.selection import scores, select
from ragaudit.encoding.errors import InternalError
from ragaudit.encoding.parameters import SQUARED_NORM
from ragaudit.lab.attacks.cheat import ConstructedCheat, ServiceCheat, part
from ragaudit.lab.attacks.cheats.disputes import Bare, demand
from ragaudit.lab.scenario.opening import Account, Asked
from ragaudit.lab.scenario.policy import START
from ragaudit.lab.scenario.scenario import Scenario
from ragaudit.lab.scenario.window import Window
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.requests import Request
from ragaudit.prover.answering.mechanism import Mechanism
from ragaudit.prover.index.committed import CommittedIndex
from ragaudit.prover.window.open_window import OpenWindow

Embedding = npt.NDArray[np.int16]

Scores = npt.NDArray[np.int64]


_FAILS: Final = "selection argument does not hold"
with_services = partial(ServiceCheat, checks=("selection",), reason=_FAILS)
constructed = partial(ConstructedCheat, checks=("selection",), reason=_FAILS)


@with_services("select-then-noise", "SELECTION")
class SelectsThenAddsNoise(Mechanism):
    """Selects by true scores and adds noise to what is shown.

    The noise decides nothing.

    Check 19 (`selection`): the argument holds for y = s + z only.
    """

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        return tuple(sorted(np.argsort(-exact, kind="stable")[:top_k].tolist()))


@with_services("noise-only-on-the-winners", "SELECTION")
class NoiseOnWinnersOnly(Mechanism):
    """Adds noise to the best candidates only, so that others cannot win.

    The candidates are the 2 K best rows.

    Check 19 (`selection`) draws the noise of every row.
    """

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        winners = np.argsort(-exact, kind="stable")[: 2 * top_k].tolist()
        return select(exact + noise, top_k, sorted(winners))


@with_services("half-the-sigma", "SELECTION")
class HalfTheSigma(Mechanism):
    """Draws noise of half the promised width.

    The key is the right one.

    Check 19 (`selection`) recomputes z from the opened key and the policy's sigma.
    """

    def draw_noise(
        self, live: OpenWindow, index: CommittedIndex, record: Record, nonce: bytes | None
    ) -> Scores:
        return super().draw_noise(live, index, record, nonce) // 2


@with_services("another-sampler", "NOISE")
class OtherSampler(Mechanism):
    """Draws the noise with a generator of its own instead of the committed key's.

    It draws rounded Gaussians of the right width.

    Check 19 (`selection`) recomputes z from the opened key.
    """

    def draw_noise(
        self, live: OpenWindow, index: CommittedIndex, record: Record, nonce: bytes | None
    ) -> Scores:
        seed = int.from_bytes(live.seed.key(record.slot, record.counter), "little")
        width = float(live.policy.sigma) * SQUARED_NORM
        drawn = np.random.default_rng(seed).normal(scale=width, size=index.count)
        return np.rint(drawn).astype(np.int64)


@with_services("one-row-swapped", "SELECTION")
class SwapsOneRow(Mechanism):
    """Replaces one selected row by another.

    Check 19 (`selection`): no argument for the committed set holds.
    """

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        chosen = super().select(exact, noise, top_k)
        left_out = next(i for i in range(len(exact)) if i not in chosen)
        return tuple(sorted((*chosen[1:], left_out)))


@with_services("one-row-too-many", "SELECTION", complaint="step 6 (selection)")
class OneRowTooMany(Mechanism):
    """Selects K + 1 rows.

    Check 19 (`selection`): no argument for the committed set holds.
    """

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        return super().select(exact, noise, top_k + 1)


@with_services("ties-dropped-without-a-tie", "SELECTION")
class FeignsTies(Mechanism):
    """Drops a selected row as if it had been tied at the boundary.

    Check 19 (`selection`): only rows that tie with y_(K+1) may be missing.
    """

    def select(self, exact: Scores, noise: Scores, top_k: int) -> tuple[int, ...]:
        return super().select(exact, noise, top_k)[1:]


@with_services("row-outside-the-committed-ones", "INDEX", complaint="step 6 (selection)")
class CommitsBeyondTheIndex(Mechanism):
    """Commits to a selection that holds a position beyond the index.

    Check 19 (`selection`): B_sel may hold A_i of the index's rows only.
    """

    def selection_commitment(self, selected: Sequence[int], blinding: bytes) -> bytes:
        return core.commit_selection([*selected, 10**6], blinding)


@with_services("stale-index-version", "CONTAINMENT")
class StaleIndex(Mechanism):
    """Scores an earlier version of the index than the committed one.

    Its rows stood elsewhere and had no bounded norm.

    With bounded rows the noise would hide the change in most records. Check 19 (`selection`) is
    about the rows that C_idx holds.
    """

    def scores(
        self, index: CommittedIndex, embedding: Embedding, rows: Scores | None = None
    ) -> Scores:
        exact = 50 * np.roll(super().scores(index, embedding), 1)
        return exact if rows is None else exact[rows]


@with_services("noiseless-and-disputed", "SELECTION", parts=part(SelectsThenAddsNoise))
class DisputesItsOwnAnswers(Scenario):
    """Retrieves without noise and disputes its own answers, to be opened none.

    mallory is the provider's. It disputes her answers, and tries to in everybody's name.

    Check 19 (`selection`) sees these records all the same: a dispute takes none out of the sample.
    """

    def before_second(self, at: int) -> None:
        super().before_second(at)
        self.mallory = Bare(self, "mallory")
        # Without a cosigned registration before the second instant mallory could not ask (check 9).
        self.prover.checkpoint()

    def after_second(self, at: int) -> None:
        super().after_second(at)
        self.clock.at(at + 21)
        for number in range(3):
            self.mallory.ask(f"question {number} of mallory")

    def after_submission(self) -> None:
        for file in self.mallory.files:
            demand(self.mallory.dispute(file))
        for account in self.accounts.values():
            for receipt in account.receipts:
                owner = receipt.file.public.query.pseudonym
                refused = self.mallory.dispute(receipt.file.to_json(), of=owner)
                # Or the provider could burden any account with disputes of its own making.
                if refused.status_code != httpx.codes.UNPROCESSABLE_ENTITY:
                    raise InternalError("a dispute that the account did not sign was taken")


class Noiseless(Window):
    """The true top K of every record.

    Check 19 (`selection`) adds the noise of the opened key.
    """

    def select(
        self, tenant: str, embedding: Embedding, noise: Scores, top_k: int
    ) -> tuple[int, ...]:
        return select(scores(self.indices[tenant].vectors, embedding), top_k)


@constructed(
    "noiseless-and-disputed-in-mode-b", "SELECTION", why="the scenario with services has mode A"
)
@dataclass
class NoiselessAndDisputed(Noiseless):
    """Retrieves without noise, every record of it disputed, and is sampled.

    The window is in mode B.

    Check 19 (`selection`): nothing takes a record out of the strata (9.1).
    """

    mode: str = "B"

    def disputes(self) -> list[dict[str, Any]]:
        return [self.dispute(asked) for asked in self.asked]


@constructed(
    "proof-over-another-tenants-index",
    "CONTAINMENT",
    why="the prover service has no answer whose record and index differ in tenant",
)
class OtherIndex(Window):
    """Logs a record of the account's tenant and proves it over another's index.

    The record is bob's, who is answered from that index.

    Check 19 (`selection`) takes C_idx of the tenant that the account is registered in.
    """

    def served_tenant(self, account: Account) -> str:
        return "beta" if account.name == "bob" else super().served_tenant(account)


# Where the search ends with the draws as they are; with others it goes on from there.
_FIRST_TEXT = 6_783
_MOST_TEXTS = 200_000


class Tied(Window):
    """bob's second question is one whose noised scores tie at the boundary.

    The honest selection leaves the tied rows out (docs/spec/02-integers.md §2.3); subclasses keep
    some.

    Attributes:
        top_k: K of that question; large, so that a tie is found soon.
    """

    top_k = 30

    def __init__(self) -> None:
        super().__init__(rows=64, overrides={"top_k_max": self.top_k})

    def query(self, name: str, text: str, top_k: int, time: int) -> Asked:
        account = self.accounts[name]
        if (name, account.queries) != ("bob", 1):
            return super().query(name, text, top_k, time)
        return super().query(name, self.tying(account, time), self.top_k, time)

    def tying(self, account: Account, time: int) -> str:
        """Return a text whose noised scores tie at the boundary.

        It can be searched for because the noise does not depend on the text.

        Args:
            account: who asks; its next counter decides the noise.
            time: seconds after `START`.

        Raises:
            AssertionError: none of `_MOST_TEXTS` texts ties.
        """
        openings = self.open_request(account, Request("any", 1))
        record = self.promised(account, openings, self.top_k, 1000 * (START + time))
        noise = self.noise(record, self.noise_secret(record))
        vectors = self.indices[account.tenant].vectors
        for number in range(_FIRST_TEXT, _FIRST_TEXT + _MOST_TEXTS):
            text = f"question {number} of bob"
            ranked = np.sort(scores(vectors, self.embed(text)) + noise)[::-1]
            if ranked[self.top_k - 1] == ranked[self.top_k]:
                return text
        raise AssertionError("no text ties")

    def select(
        self, tenant: str, embedding: npt.NDArray[np.int16], noise: Scores, top_k: int
    ) -> tuple[int, ...]:
        exact = scores(self.indices[tenant].vectors, embedding)
        honest = super().select(tenant, embedding, noise, top_k)
        noised = exact + noise
        boundary = np.sort(noised)[::-1][top_k]
        tied = [int(i) for i in np.flatnonzero(noised == boundary)]
        missing = top_k - len(honest)
        return tuple(sorted((*honest, *self.chosen(tied, exact, missing))))

    def chosen(self, tied: list[int], exact: Scores, missing: int) -> list[int]:
        """Return the tied rows that are selected nevertheless.

        Args:
            tied: rows whose noised score is y_(K+1), rising.
            exact: int64[N], the scores without noise.
            missing: how many rows K still has room for.
        """
        raise NotImplementedError


@constructed("tie-kept", "SELECTION", why="no provider can bring a tie about")
class KeepsTies(Tied):
    """Keeps a row that ties with one that is left out.

    Fills the answer up to K rows with tied ones.

    Check 19 (`selection`) wants y above y_(K+1).
    """

    def chosen(self, tied: list[int], exact: Scores, missing: int) -> list[int]:
        return tied[:missing]


@constructed("tie-broken-by-the-score", "SELECTION", why="no provider can bring a tie about")
class BreaksTiesByScore(Tied):
    """Breaks a tie of noised scores by the true ones.

    Of the tied rows, those with the best true scores are selected.

    Check 19 (`selection`) wants none of them; such a rule would tell of scores without noise.
    """

    def chosen(self, tied: list[int], exact: Scores, missing: int) -> list[int]:
        return sorted(tied, key=lambda i: -int(exact[i]))[:missing]
