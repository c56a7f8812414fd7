"""What is kept of records, and read again, is what the handover says; memory does not grow."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_taken import peak
from ragaudit.encoding.digests import salted
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench.log import LargeLogSizes, write_large_log
from ragaudit.ledger.messages import items as names
from ragaudit.ledger.messages.entries import Record
from ragaudit.ledger.messages.handover import Entry, read_frames, read_handover, write_handover
from ragaudit.verifier.bundle import MalformedBundle, open_bundle, read_archive, write_archive
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure.checks import CHECKS
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import Pins
from ragaudit.verifier.procedure.logged import NOT_COUNTED, LoggedRecords, read_record

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
    for summary, listed, logged in zip(streamed.summaries(), streamed.listed(), whole, strict=True):
        assert (listed.position, listed.pseudonym) == (summary.entry, summary.pseudonym)
        record = logged.record
        assert (summary.entry, summary.name) == (logged.index, logged.name)
        assert summary.anchored == (record.nonce is not None)
        assert summary.withheld == (NOT_COUNTED if record.withheld is None else record.withheld)
        for name in summary._fields[2:-4]:
            assert getattr(summary, name) == getattr(record, name)
    grouped = streamed.by_account()
    for pseudonym in {logged.record.pseudonym for logged in whole}:
        own = [each.index for each in whole if each.record.pseudonym == pseudonym]
        assert [summary.entry for summary in grouped[pseudonym]] == own
        assert grouped.count(pseudonym) == len(own)
    assert len(grouped) == len({logged.record.pseudonym for logged in whole})
    assert grouped.count(b"nobody") == 0
    some = frozenset({1, 4, 99})
    assert streamed.at(some) == tuple(each for each in whole if each.index in some)


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
    for length in (0, 2**20 + 1, 2**63, 2**64 - 1):
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
