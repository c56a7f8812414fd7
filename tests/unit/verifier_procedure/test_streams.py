"""Evidence and bundles, read whole or one entry and one record at a time."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from generation_messages import CHARGE, GENERATED
from hypothesis import given, settings
from hypothesis import strategies as st
from large_answers import write_large_answers
from memory_taken import held, peak
from ragaudit.encoding import canonical_json
from ragaudit.encoding.digests import salted
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench.log import LargeLogSizes, write_large_log
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.entries import (
    Charge,
    Generated,
    Record,
    Registration,
    Void,
    parse_body,
)
from ragaudit.ledger.messages.evidence import Entries
from ragaudit.ledger.messages.handover import (
    MAX_OPENING_BYTES,
    Entry,
    read_frames,
    read_handover,
    write_handover,
)
from ragaudit.ledger.messages.items import index_name, response_name
from ragaudit.verifier import bundle as bundle_module
from ragaudit.verifier import bundle as bundles
from ragaudit.verifier.bundle import (
    BLOCK_BYTES,
    Archive,
    MalformedBundle,
    ZipEntry,
    open_bundle,
    read_archive,
    trailer,
    write_archive,
    write_bundle,
)
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure import logged
from ragaudit.verifier.procedure.checks import CHECKS
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import Pins
from ragaudit.verifier.procedure.logged import (
    NOT_COUNTED,
    EntryColumns,
    Logged,
    LoggedEntries,
    LoggedRecords,
    read_record,
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
        Logged(entry.index, body, entry.body)
        for entry, body in bodies
        if isinstance(body, Registration)
    ]
    registrations = columns.registrations
    assert list(registrations) == registered
    assert [registrations.summary(rank) for rank in range(len(registered))] == [
        (rank, one.entry, body.slot, body.time, body.tenant, False)
        for rank, one in enumerate(registered)
        for body in (one.body,)
    ]
    owners = [each.body.pseudonym for each in registered]
    assert list(registrations.pseudonyms) == owners
    assert registrations.accounts == len(set(owners))
    charges = [
        Logged(entry.index, body, entry.body) for entry, body in bodies if isinstance(body, Charge)
    ]
    assert list(columns.charges) == charges
    askers = [each.body.pseudonym for each in charges]
    assert list(columns.charges.accounts()) == list(dict.fromkeys(askers))
    for pseudonym in {*owners, *askers, b"\x09" * 32}:
        rank = owners.index(pseudonym) if pseudonym in owners else None
        known = None if rank is None else registrations.summary(rank)
        assert registrations.first(pseudonym) == (known, owners.count(pseudonym) > 1)
        assert columns.charges.count(pseudonym) == askers.count(pseudonym)
        found = columns.charges.of_account(pseudonym)
        assert [each.entry for each in found] == [
            each.entry for each in charges if each.body.pseudonym == pseudonym
        ]
    for summary, charge in zip(columns.charges.summaries(), charges, strict=True):
        assert (summary.entry, summary.name, summary.kind) == (
            *(charge.entry, charge.name),
            Charge.KIND,
        )
        for name in ("window", "tenant", "pseudonym", "slot", "counter", "time"):
            assert getattr(summary, name) == getattr(charge.body, name)
        assert columns.charges.number_of(charge.entry) == summary.number
    for tenant in ("t0", "t1", "t2"):
        numbers = [at for at, each in enumerate(charges) if each.body.tenant == tenant]
        assert columns.charges.of_tenant(tenant).tolist() == numbers
    places = {each.entry for each in charges[::2]} | {999}
    assert columns.charges.at(places) == tuple(charges[::2])
    assert columns.charges.number_of(999) is None

    replies = [
        Logged(entry.index, body, entry.body)
        for entry, body in bodies
        if isinstance(body, Generated | Void)
    ]
    assert list(columns.replies) == replies
    for place in range(7):
        to = [each for each in replies if each.body.charge == place]
        assert [(one.entry, one.kind, one.time, one.name) for one in columns.replies.to(place)] == [
            (each.entry, each.body.KIND, each.body.time, each.name) for each in to
        ]
        answers = [each.body for each in to if isinstance(each.body, Generated)]
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
            *(write_large_answers, [(500, 20), (2500, 20)], IN_WORDS, 2), marks=pytest.mark.nightly
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


OF_THE_LOG = ("log", "split-view", "counters", "schedule", "containment", "nonces", "accounts")


def a_record(account: int, counter: int, sketch: bytes, *, anchored: bool) -> bytes:
    digest, committed = bytes([account]) * 32, salted(bytes(32), sketch)
    body = Record(
        policy_digest=bytes(32), window="w1", tenant=f"t{account % 2}", version=1, rows=9, top_k=2,
        filter_digest=digest, pseudonym=digest, epoch=1, slot=account, counter=counter,
        activation=1, time=1000 + counter, nonce=digest if anchored else None, query_digest=digest,
        embedding_digest=digest, sketch_digest=committed, selection_commitment=digest,
        withheld=(None, 0, 2)[counter % 3],
    )  # fmt: skip
    return body.encode()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            *(st.integers(0, 4), st.booleans(), st.booleans()),
            *(st.sampled_from([0, 1, 8, 64, 65]), st.sampled_from([0, 31, 32])),
        ),
        max_size=12,
    )
)
def test_streamed_records_are_those_in_memory(
    asked: list[tuple[int, bool, bool, int, int]],
) -> None:
    entries, sketches = [], []
    for index, (account, anchored, other, length, salt) in enumerate(asked):
        kind, sketch = "registration" if other else Record.KIND, bytes([index]) * length
        body = (
            b"other" if other else a_record(account, index, bytes([index]) * 8, anchored=anchored)
        )
        shown = (b"", b"") if other else (bytes(salt), sketch)
        entries.append(Entry(index, kind, bytes([index]) * 32, body, *shown))
        if not other:
            sketches.append((sketch, (length, salt) == (8, 32)))
    file = io.BytesIO(write_handover(entries))
    streamed = LoggedRecords(file)
    for entry, offset in read_frames(file):
        if entry.kind == Record.KIND:
            streamed.add(entry, offset)
    whole = [read_record(entry) for entry in entries if entry.kind == Record.KIND]
    assert list(streamed) == whole
    assert [listed.salt for listed in streamed.listed()] == [
        entry.salt for entry in entries if entry.kind == Record.KIND
    ]
    assert list(streamed.sketches) == [each if len(each) < 65 else b"" for each, _ in sketches]
    assert [(each.sketch_bytes, each.sketched) for each in streamed.summaries()] == [
        (len(sketch), committed) for sketch, committed in sketches
    ]
    for summary, listed, one in zip(streamed.summaries(), streamed.listed(), whole, strict=True):
        assert (listed.position, listed.pseudonym) == (summary.entry, summary.pseudonym)
        record = one.body
        assert (summary.entry, summary.name) == (one.entry, one.name)
        assert summary.anchored == (record.nonce is not None)
        assert summary.withheld == (NOT_COUNTED if record.withheld is None else record.withheld)
        for name in summary._fields[2:-4]:
            assert getattr(summary, name) == getattr(record, name)
    grouped = streamed.by_account()
    for pseudonym in {each.body.pseudonym for each in whole}:
        own = [each.entry for each in whole if each.body.pseudonym == pseudonym]
        assert [summary.entry for summary in grouped[pseudonym]] == own
        assert grouped.count(pseudonym) == len(own)
    assert len(grouped) == len({each.body.pseudonym for each in whole})
    assert grouped.count(b"nobody") == 0
    some = frozenset({1, 4, 99})
    assert streamed.at(some) == tuple(each for each in whole if each.entry in some)


@pytest.fixture(scope="module")
def evidence_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large") / "evidence"
    write_large_log(LargeLogSizes(records=60, accounts=7), folder)
    return folder


def results(evidence: Evidence) -> dict[str, tuple[str, str]]:
    context = Context(evidence, engine=engine("core"), pins=Pins())
    found = [check.apply(context) for check in CHECKS if check.id in OF_THE_LOG]
    return {each.id: (str(each.status), each.reason) for each in found}


def test_a_large_log_is_a_valid_one(evidence_folder: Path) -> None:
    found = results(Evidence.from_directory(evidence_folder))
    assert {status for status, _ in found.values()} == {"PASS"}, found
    assert found["log"][1].startswith("70 entries, 60 of them records")


def test_files_and_memory_agree(evidence_folder: Path) -> None:
    files = Evidence.from_directory(evidence_folder)
    memory = Evidence.of(files)
    archive = io.BytesIO()
    write_archive(archive, files, b"verdict", part="all")
    bundled = read_archive(archive)
    assert bundled.evidence.digests() == files.digests() == memory.digests() == bundled.digests
    assert results(files) == results(memory) == results(bundled.evidence)


@pytest.mark.parametrize("name", [names.RECORDS, names.LEAVES, names.ENTRIES])
def test_every_spoilt_stream_fails_the_log(evidence_folder: Path, name: str) -> None:
    items = dict(Evidence.from_directory(evidence_folder))
    data, middle = items[name], len(items[name]) // 2
    for spoilt in (
        data[:-1], data[:-32], data[32:], data + data[-32:], b"", data[middle:] + data[:middle],
        data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
    ):  # fmt: skip
        status, reason = results(Evidence.of({**items, name: spoilt}))["log"]
        assert status == "FAIL", reason


def test_a_spoilt_record_is_named(evidence_folder: Path) -> None:
    items = dict(Evidence.from_directory(evidence_folder))
    entries = list(read_handover(io.BytesIO(items[names.RECORDS])))
    spoil = replace(entries[30], salt=bytes(32))
    swapped = [*entries[:30], entries[31], entries[30], *entries[32:]]
    for changed, where in (
        ([*entries[:30], spoil, *entries[31:]], "entry 30: rehashes to another leaf"),
        (swapped, "handover entry 30: index 31"),
        ([*entries[:30], *entries[31:]], "handover entry 30: index 31"),
        ([*entries[:30], entries[30], *entries[30:]], "handover entry 31: index 30"),
    ):
        data = write_handover(changed)
        assert where in results(Evidence.of({**items, names.RECORDS: data}))["log"][1]


def test_an_item_that_changes_between_two_readings(evidence_folder: Path, tmp_path: Path) -> None:
    files = Evidence.from_directory(evidence_folder)
    path = tmp_path / "bundle.zip"
    with path.open("wb") as out:
        write_archive(out, files, b"verdict", part="all")
    place = path.read_bytes().index(files[names.RECORDS][20_000:20_100])
    with open_bundle(path) as bundle, bundle.evidence.open(names.RECORDS) as item:
        assert len(item.read(100)) == 100
        with path.open("r+b") as hand:
            hand.seek(place)
            hand.write(b"\0")
        item.seek(17_000)
        with pytest.raises(MalformedBundle, match=r"records\.bin, block 1: the file changed"):
            item.read(5000)
        with pytest.raises(MalformedBundle, match="the file changed"):
            bundle.evidence[names.RECORDS]
    # The writer reads twice, too: the manifest names what the archive then holds.
    readings = iter([b"first", b"other"])
    unsteady = Evidence(["public/policy.json"], lambda _: next(readings))
    with pytest.raises(MalformedBundle, match="changed while it was read"):
        write_archive(io.BytesIO(), unsteady, b"verdict", part="all")


def test_no_frame_is_read_by_its_claimed_length() -> None:
    for length in (0, MAX_OPENING_BYTES + 1, 2**63, 2**64 - 1):
        with pytest.raises(MalformedError, match="frame length"):
            list(read_handover(io.BytesIO(length.to_bytes(8, "little") + bytes(64))))


def taken(records: int, folder: Path) -> int:
    """Bytes that the checks of the log hold at most, of a bundle's file."""
    write_large_log(LargeLogSizes(records, 20), folder / "evidence")
    path = folder / "bundle.zip"
    with path.open("wb") as out:
        write_archive(out, Evidence.from_directory(folder / "evidence"), b"verdict", part="all")

    def check() -> None:
        with open_bundle(path) as bundle:
            found = results(bundle.evidence)
        assert {status for status, _ in found.values()} == {"PASS"}, found

    return peak(check)


@pytest.mark.slow
def test_a_record_takes_little_memory(tmp_path: Path) -> None:
    """A record has 674 bytes in the handover; in memory there are a few numbers of it."""
    small, large = taken(1000, tmp_path / "small"), taken(5000, tmp_path / "large")
    assert large - small < 4000 * 560


ITEMS = {
    "public/policy.json": b"{}", "public/leaves.bin": bytes(96), index_name("acme"): b"index",
    "confidential/records.bin": b"", response_name(7): b"response",
}  # fmt: skip
VERDICT = b"signed"


def archive(items: dict[str, bytes] = ITEMS, part: bundles.Part = "all") -> bytes:
    file = io.BytesIO()
    bundles.write_archive(file, Evidence.of(items), VERDICT, part=part)
    return file.getvalue()


@pytest.mark.parametrize(
    "name",
    [
        "policy.json", "public/../policy.json", "/public/policy.json", "public/index/acme/0.bin",
        "public/index/acme/01.bin",
        "public/index/ACME/1.bin", "public/index/a/b/1.bin", "confidential/responses/007.bin",
        "confidential/responses/-1.bin", "confidential/responses/1.bin/x", "public/policy.json\n",
        "public\\policy.json", "",
    ],
)  # fmt: skip
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(MalformedError, match="no evidence item"):
        Evidence.of({name: b""})


def test_evidence_reads_an_item_when_it_is_asked_for(tmp_path: Path) -> None:
    asked: list[str] = []

    def read(name: str) -> bytes:
        asked.append(name)
        return ITEMS[name]

    evidence = Evidence(ITEMS, read)
    assert list(evidence) == sorted(ITEMS)
    assert asked == []
    assert evidence["public/policy.json"] == b"{}"
    assert asked == ["public/policy.json"]
    assert "public/clock.json" not in evidence
    with pytest.raises(KeyError):
        evidence["public/clock.json"]
    assert set(evidence.public()) == {n for n in ITEMS if n.startswith("public/")}


def test_evidence_in_a_folder(tmp_path: Path) -> None:
    for name, data in ITEMS.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert dict(Evidence.from_directory(tmp_path)) == ITEMS
    (tmp_path / "public/clock.json").symlink_to(tmp_path / "public/policy.json")
    with pytest.raises(MalformedError, match="link"):
        Evidence.from_directory(tmp_path)


def test_what_is_no_bundle_is_called_so_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    for content in (b"", b"{}", b"PK", b"PK\5\6" + bytes(18), b"not a zip file at all"):
        path.write_bytes(content)
        with (
            pytest.raises(MalformedBundle, match=r"broken\.json: not an evidence bundle"),
            open_bundle(path),
        ):
            pass
    path.write_bytes(archive()[:-1])
    with (
        pytest.raises(MalformedBundle, match=r"broken\.json: .*archive's directory"),
        open_bundle(path),
    ):
        pass
    for absent in (tmp_path / "none.zip", tmp_path):
        with pytest.raises(MalformedBundle, match=f"{absent}: cannot be read"), open_bundle(absent):
            pass


@pytest.mark.parametrize("part", ["all", "public"])
def test_round_trip_and_reproducibility(tmp_path: Path, part: bundles.Part) -> None:
    for name in ("a.zip", "b.zip"):
        write_bundle(tmp_path / name, Evidence.of(ITEMS), VERDICT, part=part)
    data = (tmp_path / "a.zip").read_bytes()
    assert data == (tmp_path / "b.zip").read_bytes()
    with open_bundle(tmp_path / "a.zip") as bundle:
        expected = {n: d for n, d in ITEMS.items() if part == "all" or n.startswith("public/")}
        assert dict(bundle.evidence) == expected
        assert (bundle.part, bundle.verdict) == (part, VERDICT)


def test_other_tools_can_read_a_bundle() -> None:
    with zipfile.ZipFile(io.BytesIO(archive())) as file:
        assert file.testzip() is None
        assert file.namelist() == sorted([*ITEMS, "manifest.json", "verdict.json"])
        assert all(file.read(name) == data for name, data in ITEMS.items())
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_other_tools_can_read_many_entries() -> None:
    items = {response_name(i): b"" for i in range(66_000)}
    data = archive(items)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert len(file.namelist()) == 66_002
    assert len(read_archive(io.BytesIO(data)).evidence) == 66_000


def test_other_tools_can_read_far_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    # Pretend that offsets of 100 bytes do not fit the 32-bit fields any more.
    monkeypatch.setattr(bundle_module, "_FAR", 100)
    data = archive()
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert all(file.read(name) == content for name, content in ITEMS.items())
    assert dict(read_archive(io.BytesIO(data)).evidence) == ITEMS


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_changed_byte_is_accepted(data: st.DataObject) -> None:
    good = archive()
    at = data.draw(st.integers(0, len(good) - 1))
    bit = data.draw(st.integers(0, 7))
    bad = bytearray(good)
    bad[at] ^= 1 << bit
    try:
        bundle = read_archive(io.BytesIO(bytes(bad)))
    except MalformedBundle:
        return
    # The verdict is no item of the manifest: its own signature protects it.
    assert bundle.verdict != VERDICT
    assert dict(bundle.evidence) == ITEMS


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(archive()) - 1))
def test_no_truncation_is_accepted(size: int) -> None:
    with pytest.raises(MalformedBundle):
        read_archive(io.BytesIO(archive()[:size]))


@pytest.mark.parametrize("more", [b"\0", b"PK\5\6", archive()])
def test_nothing_may_follow(more: bytes) -> None:
    with pytest.raises(MalformedBundle, match="directory or end"):
        read_archive(io.BytesIO(archive() + more))


def foreign(build: "list[tuple[str, bytes]]", **options: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as out:  # type: ignore[call-overload]
        for name, data in build:
            info = zipfile.ZipInfo(name)
            info.compress_type = options.get("compression", zipfile.ZIP_STORED)
            out.writestr(info, data)
    return file.getvalue()


def test_archives_of_other_tools_are_refused() -> None:
    with pytest.raises(MalformedBundle, match="compressed"):
        read_archive(
            io.BytesIO(foreign([("manifest.json", b"a" * 99)], compression=zipfile.ZIP_DEFLATED))
        )
    with pytest.raises(MalformedBundle, match="one accepted form"):
        read_archive(io.BytesIO(foreign([("manifest.json", b"{}")])))
    with pytest.raises(MalformedBundle):
        read_archive(io.BytesIO(b""))


def test_encrypted_entries_are_refused() -> None:
    data = bytearray(archive())
    struct.pack_into("<H", data, 6, 1)
    with pytest.raises(MalformedBundle, match="encrypted"):
        read_archive(io.BytesIO(bytes(data)))


def built(entries: list[tuple[str, bytes]]) -> bytes:
    """A well-formed archive of exactly these entries, in this order."""
    data = b""
    listed: list[Any] = []
    for name, content in entries:
        offset = listed[-1].end if listed else 0
        entry = ZipEntry(name.encode(), len(content), zlib.crc32(content), offset)
        data += entry.local_header() + content
        listed.append(entry)
    return data + trailer(listed)


def manifest(items: dict[str, str], **changes: object) -> bytes:
    return canonical_json.dumps(
        {"format": bundles.FORMAT, "items": items, "part": "all", **changes}
    )


EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
LEAVES = "public/leaves.bin"


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([("manifest.json", manifest({}))], "missing"),
        ([("verdict.json", b"")], "missing"),
        ([("verdict.json", b""), ("manifest.json", manifest({}))], "order"),
        (
            [("manifest.json", manifest({})), ("manifest.json", b""), ("verdict.json", b"")],
            "repeat",
        ),
        ([("../x", b""), ("manifest.json", manifest({"../x": EMPTY})), ("verdict.json", b"")], "x"),
        ([("manifest.json", manifest({LEAVES: EMPTY})), ("verdict.json", b"")], "absent"),
        ([("manifest.json", manifest({})), (LEAVES, b""), ("verdict.json", b"")], "not listed"),
        (
            [("manifest.json", manifest({LEAVES: EMPTY})), (LEAVES, b"x"), ("verdict.json", b"")],
            "another digest",
        ),
        ([("manifest.json", manifest({}, part="some")), ("verdict.json", b"")], "manifest"),
        ([("manifest.json", manifest({}, format="x")), ("verdict.json", b"")], "manifest"),
        ([("manifest.json", manifest({}, more=1)), ("verdict.json", b"")], "manifest"),
        ([("manifest.json", manifest({}) + b" "), ("verdict.json", b"")], "canonical|JSON"),
        (
            [
                ("confidential/records.bin", b""),
                ("manifest.json", manifest({"confidential/records.bin": EMPTY}, part="public")),
                ("verdict.json", b""),
            ],
            "confidential item",
        ),
        ([("m" * 129, b""), ("verdict.json", b"")], "not an item name"),
    ],
)
def test_bundles_that_hide_or_lack_something(entries: list[tuple[str, bytes]], reason: str) -> None:
    with pytest.raises(MalformedBundle, match=reason):
        read_archive(io.BytesIO(built(entries)))


def test_too_long_items(monkeypatch: pytest.MonkeyPatch) -> None:
    data = archive()
    monkeypatch.setattr(bundles, "MAX_ITEM_BYTES", 50)
    with pytest.raises(MalformedBundle, match="too long"):
        archive()
    with pytest.raises(MalformedBundle, match="too long"):
        read_archive(io.BytesIO(data))


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def read(name: str) -> bytes:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        write_bundle(tmp_path / "b.zip", Evidence(ITEMS, read), VERDICT, part="all")
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_an_archive_is_that_part_of_the_whole() -> None:
    long = bytes(range(256)) * (BLOCK_BYTES // 100)  # of several blocks
    evidence = Evidence.of({**ITEMS, "confidential/records.bin": long, "public/leaves.bin": b""})
    archive = Archive.of(evidence, VERDICT, part="all")
    whole = b"".join(archive.pieces())
    assert len(whole) == archive.size
    # Around every boundary of an item, of a block, and of the directory.
    edges = {entry.offset for entry, _ in archive._entries}
    edges |= {entry.data_offset for entry, _ in archive._entries} | {archive.size}
    edges |= {edge + BLOCK_BYTES for edge in edges}
    for edge in edges:
        for start in range(max(0, edge - 1), edge + 2):
            assert b"".join(archive.pieces(start)) == whole[start:]
    again = Archive.of(evidence, VERDICT, part="all")
    assert again.tag == archive.tag
    assert Archive.of(evidence, VERDICT, part="public").tag != archive.tag
    assert Archive.of(evidence, VERDICT + b" ", part="all").tag != archive.tag
