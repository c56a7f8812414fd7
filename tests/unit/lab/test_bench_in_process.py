"""Answering in one process gives what a service gives: an answer with a receipt that fits it."""

from pathlib import Path

from ragaudit.lab.bench.in_process import InProcess
from ragaudit.lab.bench.workload import Sizes, Workload
from ragaudit.ledger.messages.receipts import ReceiptFile
from ragaudit.ledger.messages.requests import Request


def test_every_reply_is_another_record_and_fits_its_receipt(tmp_path: Path) -> None:
    bench = InProcess(Workload(Sizes(60, 16, 3, "2", queries=40)), tmp_path, queries=42)
    files = [ReceiptFile.parse(bench.answer()) for _ in range(42)]
    bench.close()
    public = [each.public for each in files]
    records = [each.record for each in public]
    assert [(each.slot, each.counter) for each in records[38:]] == [
        (0, 38),
        (0, 39),
        (1, 0),
        (1, 1),
    ]
    assert [each.index for each in public] == list(range(2, 44))  # after two registrations
    for number, file in enumerate(files):
        private = file.private
        assert file.request == Request(f"Question number {number}?", 3)
        file.verify_answer_digest()
        assert 1 <= len(private.selected) <= 3
        assert [each.position for each in private.rows] == list(private.selected)
        assert [each.id for each in private.rows] == [str(at) for at in private.selected]
