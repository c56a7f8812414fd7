"""What it takes a verifier to check a log: from a server of tiles, and as it was handed over."""

import http.client
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Final

from ragaudit.encoding.errors import InternalError
from ragaudit.lab.bench.large_log import TILES, LargeLogSizes, write_large_log
from ragaudit.lab.bench.measure import Measurement, measure_once
from ragaudit.lab.bench.task import Notify
from ragaudit.ledger.log.checkpoints import parse_checkpoint
from ragaudit.ledger.log.tiles import bundles_of, decode_entry_bundle, entries_path
from ragaudit.ledger.log.tree import MemoryTree, TreeHead, verify_inclusion
from ragaudit.ledger.messages.verdict import Status
from ragaudit.verifier.engines import engine
from ragaudit.verifier.evidence import Evidence
from ragaudit.verifier.procedure.checks import CHECKS
from ragaudit.verifier.procedure.context import Context
from ragaudit.verifier.procedure.facts import Pins

__all__ = ["CHECKED", "check_log"]

CHECKED: Final = (
    "log",
    "split-view",
    "registrations",
    "counters",
    "schedule",
    "containment",
    "accounts",
)
"""Checks of the procedure, in its order: those that only a log is needed for."""

_PROCESSOR: Final = "processor ms"


def check_log(sizes: LargeLogSizes, notify: Notify) -> list[Measurement]:
    """Measure the download of a log's entries and each check over its evidence, once each.

    The log is made in another process, so that memory is that of whoever checks.

    Args:
        sizes: of the log.
        notify: told what is being done.

    Raises:
        InternalError: a check fails: what is timed must be an honest log.
    """
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "evidence"
        notify("making a log", 0, 0)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            pool.submit(write_large_log, sizes, folder).result()
        notify("downloading entries", 0, 0)
        found = [_measured("download, rehash", partial(_download, folder.parent / TILES), sizes)]
        audited = Context(Evidence.from_directory(folder), engine=engine("core"), pins=Pins())
        for check in CHECKS:
            if check.id not in CHECKED:
                continue
            notify(check.id, 0, 0)

            def run(applied: Callable[[Context], object] = check.apply) -> None:
                result = applied(audited)
                if getattr(result, "status", None) is not Status.PASS:
                    raise InternalError(f"an honest log fails: {result}")

            found.append(_measured(f"check {check.id}", run, sizes))
        tree = audited.log.tree
        proving = partial(_prove_inclusion, tree, tree.size // 3)
        found.append(_measured("an inclusion proof", proving, LargeLogSizes(1, 1)))
        return found


def _measured(name: str, action: Callable[[], object], sizes: LargeLogSizes) -> Measurement:
    before = time.process_time()
    found = measure_once(name, action, records=sizes.records)
    # Of this process: beside others on the machine the clock on the wall says little.
    spent = {_PROCESSOR: 1000 * (time.process_time() - before)}
    return replace(found, details=spent)


def _download(folder: Path) -> MemoryTree:
    """Fetch every entry bundle from a server of files, and compare the root."""
    with _served(folder) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        head = parse_checkpoint(_fetched(connection, "checkpoint")).head
        tree = MemoryTree()
        for bundle in bundles_of(head.size):
            data = _fetched(connection, entries_path(bundle))
            tree.extend(decode_entry_bundle(data, bundle.width))
        connection.close()
    if tree.head() != head:
        raise InternalError("the entries give another root")
    return tree


def _fetched(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", f"/{path}")
    return connection.getresponse().read()


def _prove_inclusion(tree: MemoryTree, index: int) -> None:
    proof = tree.inclusion_proof(index)
    head = TreeHead(tree.size, tree.root())
    verify_inclusion(leaf=tree.subtree_hash(0, index), index=index, head=head, proof=proof)


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection for all requests
    disable_nagle_algorithm = True  # head and body leave as two packets: 40 ms for each bundle

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@contextmanager
def _served(folder: Path) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
