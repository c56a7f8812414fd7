"""The commands of `ragaudit bench` about a window's log, which need no index."""

from typing import Annotated

import typer
from ragaudit.encoding.errors import MalformedError
from ragaudit.lab.bench.options import AsJson, Cores

__all__ = ["coalition", "log"]


def log(
    records: Annotated[int, typer.Option("--records", min=10, help="R, records.")] = 100_000,
    accounts: Annotated[int, typer.Option("--accounts", min=2, help="A, accounts.")] = 2000,
    cores: Cores = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Check a log of R records as a verifier does: download, rehash, counters, times, accounts."""
    from ragaudit.lab.bench.machine import limited_to  # noqa: PLC0415

    with limited_to(cores) as used:  # before the libraries make their threads
        from ragaudit.lab.bench import report  # noqa: PLC0415
        from ragaudit.lab.bench.large_log import LargeLogSizes  # noqa: PLC0415
        from ragaudit.lab.bench.log_check import check_log  # noqa: PLC0415

        sizes = LargeLogSizes(records, accounts)
        with report.progress() as notify:
            measurements = check_log(sizes, notify)
    found = report.report("log", sizes, used, measurements)
    report.show(found, measurements, as_json)


def coalition(
    records: Annotated[int, typer.Option("--records", min=10, help="R, records.")] = 100_000,
    accounts: Annotated[int, typer.Option("--accounts", min=2, help="A, accounts.")] = 2000,
    bits: Annotated[
        int, typer.Option("--bits", min=64, max=512, help="b, bits of a sketch; 64 divides it.")
    ] = 256,
    cores: Cores = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Estimate coalitions over R sketches, realistic and adversarial, beside every pair compared.

    In the table a record is a pair of records that are near in time.
    """
    from ragaudit.lab.bench.machine import limited_to  # noqa: PLC0415

    if bits % 64:
        raise MalformedError(f"b = {bits}", where="--bits", expected="a multiple of 64")
    with limited_to(cores) as used:  # before the libraries make their threads
        from ragaudit.lab.bench import coalition as scenario  # noqa: PLC0415
        from ragaudit.lab.bench import report  # noqa: PLC0415

        sizes = scenario.CoalitionSizes(records, accounts, bits)
        with report.progress() as notify:
            measurements = scenario.coalition(sizes, notify)
    found = report.report("coalition", sizes, used, measurements)
    report.show(found, measurements, as_json)
