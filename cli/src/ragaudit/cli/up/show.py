"""What `ragaudit up` shows: where to point the application, what is logged, the verdict."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragaudit.cli.up.run import Parties, dispute_key_file
from ragaudit.cli.up.store import Found
from ragaudit.encoding.console import Console
from ragaudit.encoding.text import rfc3339
from ragaudit.serving.clock import system_clock

if TYPE_CHECKING:
    from ragaudit.ledger.messages.verdict import Verdict
    from rich.status import Status


class Shown:
    """Lines on a console; what is being done stands in the last one while it is done."""

    def __init__(self, console: Console, clock: Callable[[], int] = system_clock) -> None:
        self._console = console
        self._clock = clock
        self._status: Status | None = None
        self._doing = ""

    def doing(self, what: str) -> None:
        """Show what is being done now."""
        if what == self._doing:
            return
        self._doing = what
        if not self._console.is_terminal:
            self.line(what)
        elif self._status is None:
            self._status = self._console.status(what)
            self._status.start()
        else:
            self._status.update(what)

    def done(self) -> None:
        """Clear the last line."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def left_out(self, found: Found) -> None:
        """Show which collections are not served, and why."""
        for name, reason in found.left_out:
            self.line(f"left out: {name} ({reason})")

    def ready(self, parties: Parties, found: Found) -> None:
        """Show where the applications have to point, and their keys."""
        self.done()
        self._doing = ""
        self.line(f"\nPoint your application at   {parties.prover_url}")
        self.line("instead of the store, with a key of this run, and change nothing else:")
        for each in found.served:
            self.line(f"\n  collection {each.name}: {each.rows} rows, d = {each.dimension}")
            self.line(f"  key        {parties.keys[each.tenant]}")
            self.line(f"  disputes   {dispute_key_file(parties.folder, each.tenant)}")
        host, _, port = parties.prover_url.removeprefix("http://").rpartition(":")
        first = found.served[0]
        self.line(
            f"\n  chromadb.HttpClient(host={host!r}, port={port},\n"
            f"      headers={{'x-chroma-token': '{parties.keys[first.tenant]}'}})\n"
            f"      .get_collection({first.name!r}).query(query_embeddings=[...], n_results=5)"
        )
        written = (
            "is passed on to the store (--read-only refuses it)" if parties.writes else "is refused"
        )
        self.line(f"\nWhat your application writes {written}.")
        self.line("\nWhat is logged (Ctrl-C closes the window and has it audited):")

    def event(self, event: Mapping[str, Any]) -> None:
        """Show a request that was answered."""
        found, who = event["event"], event["user"]["name"]
        # What clients look up on construction tells a reader nothing.
        looked = event["http"]["request"]["method"] == "GET" and found["outcome"] == "success"
        if who == "operator" or looked or found["action"] == "register":
            return
        at, own = event["@timestamp"][11:19], event["ragaudit"]
        took = f"{found['duration'] / 1e6:.0f} ms"
        where = f"{own['surface']} {found['action']}"
        if "receipt" in own:
            text = f"receipt {own['window']}.{own['receipt']['index']}"
        elif found["outcome"] == "success":
            text = "answered without retrieval"
        else:
            text = f"refused: {found.get('reason', event['http']['response']['status_code'])}"
        self.line(f"  {at}  {who:<24} {where:<28} {text}  {took}")

    def verdict(self, verdict: "Verdict", folder: Path | None) -> None:
        """Show the checks, and the two claims last, where the eye rests.

        Args:
            verdict: whose signature was checked.
            folder: where the evidence is kept; None if it is not.
        """
        from ragaudit.verifier.report.view import withheld

        self.done()
        predicate = verdict.predicate
        self.line(f"\nThe verdict of the verifier on window {predicate.window}:")
        for check in predicate.checks:
            self.line(f"  {check.number:>2}  {check.status:<16} {check.id:<12} {check.reason}")
        claims = predicate.claims
        integrity, privacy = claims.statements
        self.line(f"\nintegrity: {claims.integrity}. {integrity}")
        self.line(f"privacy:   {claims.privacy}. {privacy}")
        self.line(f"withheld:  {withheld(predicate)}")
        self.line("You play both parties here, so the verdict proves nothing to others.")
        if folder is not None:
            bundle = folder / "bundle.zip"
            self.line(f"evidence: {bundle}; judge it again: ragaudit verifier recheck {bundle}")

    def shadow_ready(self, url: str, found: Found) -> None:
        """Show where the applications have to point in shadow mode."""
        self.done()
        self._doing = ""
        names = ", ".join(each.name for each in found.served)
        self.line(f"\nPoint your application at   {url}")
        self.line(f"instead of the store, and change nothing else. Compared: {names}.")
        self.line("SHADOW: the store answers; nothing is logged and nothing is proven.")
        self.line("What differs (Ctrl-C ends it and shows the sum):")

    def difference(self, text: str) -> None:
        """Show a difference, and when it was."""
        self.line(f"  {rfc3339(self._clock())[11:19]}  {text}")

    def count(self, text: str) -> None:
        """Show a count where it can be overwritten."""
        if self._console.is_terminal:
            self.doing(text)

    def line(self, text: str) -> None:
        """Show a line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
