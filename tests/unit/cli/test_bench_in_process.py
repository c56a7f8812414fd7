"""Answering in one process gives what a service gives: an answer with a receipt that fits it."""

import json
from pathlib import Path

from ragaudit.cli.bench.in_process import InProcess
from ragaudit.cli.bench.workload import Sizes, Workload
from ragaudit.ledger.receipts import PrivateReceipt, PublicReceipt, answer_digest
from ragaudit.ledger.requests import Answer, Request


def test_every_reply_is_another_record_and_fits_its_receipt(tmp_path: Path) -> None:
    bench = InProcess(Workload(Sizes(60, 16, 3, "2")), tmp_path, queries=42)
    replies = [json.loads(bench.answer()) for _ in range(42)]
    bench.close()
    public = [PublicReceipt.from_json(each["receipt"]["public"]) for each in replies]
    records = [each.record for each in public]
    assert [(each.slot, each.counter) for each in records[38:]] == [
        (0, 38),
        (0, 39),
        (1, 0),
        (1, 1),
    ]
    assert [each.index for each in public] == list(range(2, 44))  # after two registrations
    assert replies[0]["remaining"] == 39
    for number, (reply, receipt) in enumerate(zip(replies, public, strict=True)):
        private = PrivateReceipt.from_json(reply["receipt"]["private"])
        answer = Answer.from_json(reply["answer"])
        request = Request(f"Question number {number}?", 3)
        assert receipt.answer_digest == answer_digest(request, answer, private)
        assert 1 <= len(private.selected) <= 3
        assert [each.position for each in private.rows] == list(private.selected)
        assert [each.id for each in private.rows] == [str(at) for at in private.selected]
