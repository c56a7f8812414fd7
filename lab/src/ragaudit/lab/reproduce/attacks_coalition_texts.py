"""Figure 7 with a real embedder: honest accounts under the product's sketches and estimator."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from ragaudit import core
from ragaudit.circuits.quantise import quantise_rows
from ragaudit.circuits.sketch import sketches
from ragaudit.embedders import registry
from ragaudit.lab.reproduce.attacks_glosses import glosses
from ragaudit.lab.reproduce.attacks_results import Finding, Run
from ragaudit.privacy.coalition import hamming_threshold

__all__ = ["BITS", "SEED", "link", "real"]

BITS, SEED = 512, bytes(range(32))
SIZES = ((10, 10), (30, 100), (100, 100), (300, 100), (1000, 100), (10, 10_000))
"""Honest accounts and questions of each; one window of time."""
MOST_ACCOUNTS, STEPS = 1000, (100, 200, 400, 800, 1600, 3200, 6400, 10_000)
"""The largest cell, and after how many questions of each account k-hat is looked at."""

Integers = npt.NDArray[np.int64]
Sketches = npt.NDArray[np.uint8]


def link(asked: Sketches, accounts: Integers, theta: str, first: int | None = None) -> Integers:
    """Return the smallest account of each account's group, all questions in one window of time.

    Args:
        asked: uint8[n, BITS/8].
        accounts: int64[n], who asked.
        theta: the threshold.
        first: how many questions, from the first on, are compared with all; None: every one is.
    """
    return core.link_accounts(
        accounts.astype(np.int64), np.zeros(len(asked), dtype=np.int64),
        np.zeros(len(asked), dtype=np.uint8), asked, tau=0, life=0,
        threshold=hamming_threshold(theta, BITS), part=None if first is None else (0, first),
    )  # fmt: skip


def real(run: Run) -> Iterator[Finding]:
    """Yield how many honest accounts are linked that ask for WordNet's glosses, each its own ones.

    Args:
        run: with `quick`, no cell of more than a hundred accounts.

    Raises:
        RefusedError: WordNet's glosses are not installed.
        EmbedderUnavailable: WordLlama is not installed.
    """
    sizes = SIZES[:3] if run.quick else SIZES
    texts = _Texts(run)
    asked = texts.sketched(0, max(accounts * count for accounts, count in sizes))
    for number, (accounts, count) in enumerate(sizes):
        owners = np.repeat(np.arange(accounts), count)
        for theta in ("0.8", "0.9"):
            k_hat = np.bincount(link(asked[: accounts * count], owners, theta)).max()
            yield _finding(accounts, count, theta, int(k_hat), "of different glosses; 1 is right")
        run.progress("Figure 7, real texts", number + 1, len(sizes))
    if not run.quick:
        yield from _largest(run, texts)


def _finding(accounts: int, count: int, theta: str, k_hat: int, reason: str) -> Finding:
    return Finding(
        f"honest accounts linked, WordLlama, A = {accounts}, n = {count}, theta {theta}",
        float(k_hat), reason=reason,
    )  # fmt: skip


class _Texts:
    """Texts without end, no two the same: glosses, then two of them at a time."""

    def __init__(self, run: Run) -> None:
        every = glosses(120_000)
        self._texts = [every[place] for place in run.generator(7, 10).permutation(len(every))]
        self._embedder = registry.load()

    def sketched(self, start: int, end: int) -> Sketches:
        """Return the sketches of the texts from one number to another, uint8[n, BITS/8]."""
        found = [
            sketches(
                quantise_rows(self._embedder.embed(list(map(self._text, range(*part))))).astype(
                    np.int16
                ),
                SEED, BITS,
            )
            for part in pairwise([*range(start, end, 20_000), end])
        ]  # fmt: skip
        return np.concatenate(found)

    def _text(self, number: int) -> str:
        turn, place = divmod(number, len(self._texts))
        other = self._texts[(place + turn) % len(self._texts)]
        return f"{self._texts[place]}; {other}" if turn else other


def _largest(run: Run, texts: _Texts) -> Iterator[Finding]:
    """k-hat of most accounts with most questions, exactly, from as few of them as decide it.

    Questions only add links. So what fewer of them have linked stays so, only accounts outside of
    the largest group are still compared with all, and once nobody is outside, k-hat is known.
    """
    parts: list[Sketches] = []
    owners: list[Integers] = []
    groups = {theta: np.arange(MOST_ACCOUNTS) for theta in ("0.8", "0.9")}
    needed = dict.fromkeys(groups, 0)
    for before, count in pairwise((0, *STEPS)):
        open_ones = [theta for theta, found in groups.items() if len(set(found.tolist())) > 1]
        if not open_ones:
            break
        parts.append(texts.sketched(MOST_ACCOUNTS * before, MOST_ACCOUNTS * count))
        owners.append(np.repeat(np.arange(MOST_ACCOUNTS), count - before))
        asked, who = np.concatenate(parts), np.concatenate(owners)
        for theta in open_ones:
            groups[theta] = joined(asked, who, theta, groups[theta])
            needed[theta] = count
        run.progress("Figure 7, most questions", count, STEPS[-1])
    for theta, found in groups.items():
        k_hat = int(np.bincount(found).max())
        whole = f"all of them with {needed[theta]} questions of each; questions only add links"
        reason = whole if k_hat == MOST_ACCOUNTS else "of different texts; 1 is right"
        yield _finding(MOST_ACCOUNTS, STEPS[-1], theta, k_hat, reason)


def joined(asked: Sketches, accounts: Integers, theta: str, groups: Integers) -> Integers:
    """Return the groups of all questions, from those that some of them have linked already.

    Args:
        asked, accounts, theta: as of `link`, of all questions.
        groups: int64[A], the smallest account of each account's group so far.
    """
    own = groups[accounts]
    outside = own != np.bincount(own).argmax()
    order = np.argsort(~outside, kind="stable")
    merged = link(asked[order], own[order], theta, int(outside.sum()))
    found: Integers = merged[groups]
    return found
