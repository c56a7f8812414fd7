"""What is kept of entries other than records is what the log says; memory does not grow with it."""

import io
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from generation_messages import CHARGE, GENERATED
from hypothesis import given, settings
from hypothesis import strategies as st
from large_words import write_large_words
from memory_taken import held
from ragaudit.lab.bench.log import LargeLogSizes, write_large_log
from ragaudit.ledger.messages.entries import Charge, Generated, Registration, Void, parse_body
from ragaudit.ledger.messages.evidence import Entries
from ragaudit.ledger.messages.handover import Entry
from ragaudit.verifier.bundle import open_bundle, write_archive
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import logged
from ragaudit.verifier.procedure.checks import CHECKS
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import Pins
from ragaudit.verifier.procedure.logged import (
    EntryColumns,
    LoggedCharge,
    LoggedEntries,
    LoggedRegistration,
    LoggedReply,
)

IN_WORDS = ("log", "registrations", "counters", "schedule", "nonces", "charges", "answers")
OF_ACCOUNTS = ("log", "registrations", "counters", "containment", "nonces")
TREE = 64
"""Bytes of an entry's hashes: of its leaf, and of as many nodes as there are leaves."""


def a_body(kind: int, account: int, place: int) -> Registration | Charge | Generated | Void:
    # The last byte of the second one is zero, as a text's end.
    pseudonym = bytes([account]) * 31 + bytes([max(0, account - 1)])
    if kind == 0:
        return Registration("w", pseudonym, "acme", place, None, None, place)
    if kind == 1:
        tenant = f"t{account % 2}"
        return replace(CHARGE, tenant=tenant, pseudonym=pseudonym, slot=account, counter=place)
    if kind == 2:
        return replace(GENERATED, charge=1 + account, time=place)
    return Void("w", "acme", 1 + account, place)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 3)), max_size=14))
def test_streamed_entries_are_those_in_memory(made: list[tuple[int, int, int]]) -> None:
    entries, index = [], 0
    for kind, account, gap in made:
        index += gap
        body = a_body(kind, account, index)
        entries.append(Entry(index, body.KIND, bytes([account]) * 32, body.encode()))
    file = io.BytesIO(Entries(tuple(entries)).encode())
    streamed = LoggedEntries(file)
    columns = EntryColumns.of(streamed)
    for entry, start, end in Entries.located(io.BytesIO(file.getvalue())):
        position = streamed.add(entry, start, end)
        columns.add(position, parse_body(entry.kind, entry.body))
    assert [streamed[at] for at in range(len(streamed))] == entries
    assert list(streamed.kinds()) == [(entry.index, entry.kind) for entry in entries]
    assert streamed.indices.tolist() == [entry.index for entry in entries]
    for name in (Registration.KIND, Charge.KIND, Generated.KIND, Void.KIND):
        own = [entry for entry in entries if entry.kind == name]
        assert (list(streamed.of_kind(name)), streamed.count(name)) == (own, len(own))

    bodies = [(entry, parse_body(entry.kind, entry.body)) for entry in entries]
    registered = [
        LoggedRegistration(entry.index, body)
        for entry, body in bodies
        if isinstance(body, Registration)
    ]
    registrations = columns.registrations
    assert list(registrations) == registered
    assert [registrations.summary(rank) for rank in range(len(registered))] == [
        (rank, one.index, body.slot, body.time, body.tenant, False)
        for rank, one in enumerate(registered)
        for body in (one.registration,)
    ]
    owners = [each.registration.pseudonym for each in registered]
    assert list(registrations.pseudonyms) == owners
    assert registrations.accounts == len(set(owners))
    charges = [
        LoggedCharge(entry.index, entry.body, body)
        for entry, body in bodies
        if isinstance(body, Charge)
    ]
    assert list(columns.charges) == charges
    askers = [each.charge.pseudonym for each in charges]
    assert list(columns.charges.accounts()) == list(dict.fromkeys(askers))
    for pseudonym in {*owners, *askers, b"\x09" * 32}:
        rank = owners.index(pseudonym) if pseudonym in owners else None
        known = None if rank is None else registrations.summary(rank)
        assert registrations.first(pseudonym) == (known, owners.count(pseudonym) > 1)
        assert columns.charges.count(pseudonym) == askers.count(pseudonym)
        found = columns.charges.of_account(pseudonym)
        assert [each.entry for each in found] == [
            each.index for each in charges if each.charge.pseudonym == pseudonym
        ]
    for summary, charge in zip(columns.charges.summaries(), charges, strict=True):
        assert (summary.entry, summary.name, summary.kind) == (
            *(charge.index, charge.name),
            Charge.KIND,
        )
        for name in ("window", "tenant", "pseudonym", "slot", "counter", "time"):
            assert getattr(summary, name) == getattr(charge.charge, name)
        assert columns.charges.number_of(charge.index) == summary.number
    for tenant in ("t0", "t1", "t2"):
        numbers = [at for at, each in enumerate(charges) if each.charge.tenant == tenant]
        assert columns.charges.of_tenant(tenant).tolist() == numbers
    places = {each.index for each in charges[::2]} | {999}
    assert columns.charges.at(places) == tuple(charges[::2])
    assert columns.charges.number_of(999) is None

    replies = [
        LoggedReply(entry.index, body)
        for entry, body in bodies
        if isinstance(body, Generated | Void)
    ]
    assert list(columns.replies) == replies
    for place in range(7):
        to = [each for each in replies if each.reply.charge == place]
        assert [(one.entry, one.kind, one.time, one.name) for one in columns.replies.to(place)] == [
            (each.entry, each.reply.KIND, each.reply.time, each.name) for each in to
        ]
        answers = [each.reply for each in to if isinstance(each.reply, Generated)]
        assert columns.replies.answer_to(place) == (answers[0] if answers else None)


def checked(evidence: Evidence, checks: tuple[str, ...]) -> Context:
    """A context that has made its checks, which pass."""
    context = Context(evidence, engine=engine("core"), pins=Pins())
    for check in CHECKS:
        if check.id in checks:
            result = check.apply(context)
            assert str(result.status) == "PASS", (check.id, result.reason)
    return context


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "sizes", "checks", "each"),
    [
        # Per question: its charge entry and its answer.
        pytest.param(
            *(write_large_words, [(500, 20), (2500, 20)], IN_WORDS, 2), marks=pytest.mark.nightly
        ),
        # Per account: its registration.
        (write_large_log, [(20, 500), (20, 2500)], OF_ACCOUNTS, 1),
    ],
)
def test_an_entry_takes_little_memory(
    tmp_path: Path,
    write: Callable[[LargeLogSizes, Path], Pins],
    sizes: list[tuple[int, int]],
    checks: tuple[str, ...],
    each: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An entry has some 900 bytes in the list; beside its hashes some 80 stay in memory."""
    # Their number is bounded: these do not grow with the log.
    monkeypatch.setattr(logged, "_ACCOUNTS_AT_HAND", 100)
    found = []
    for queries, accounts in sizes:
        folder = tmp_path / f"{queries}-{accounts}"
        write(LargeLogSizes(queries, accounts), folder / "evidence")
        path = folder / "bundle.zip"
        with path.open("wb") as out:
            files = Evidence.from_directory(folder / "evidence")
            write_archive(out, files, b"verdict", part="all")
        with open_bundle(path) as bundle:
            found.append(held(partial(checked, bundle.evidence, checks)))
    assert found[1] - found[0] < 2000 * each * (96 + TREE), found
