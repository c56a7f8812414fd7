"""What leaves the prover's process with a job: no seed, no key, nothing of an unsampled record."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from ragaudit.ledger.messages.entries import Record
from ragaudit.prover import work
from ragaudit.prover.window.records import records
from ragaudit.serving.jobs.job import Job


def test_tasks_of_a_whole_window_hold_no_secret_of_it(make_scenario: Any, monkeypatch: Any) -> None:
    scenario = make_scenario()
    service = scenario.service
    jobs: list[Job] = []
    # What every executor gets, and all that a table can pass on; a queue has keys.
    submit = service.runner._executor.submit

    def noted(given: Sequence[Job]) -> None:
        jobs.extend(given)
        submit(given)

    monkeypatch.setattr(service.runner._executor, "submit", noted)
    scenario.open_anew()
    for number in range(4):
        assert scenario.ask("ada", query=f"tickets {number}").status_code == 200
    live, window = service.open_windows.get("w1"), service.windows.get("w1")
    with service.store.read() as connection:
        logged = {each.position: each for each in records(connection, "w1")}
    sampled = set(sorted(logged)[:2])
    service.driver._challenges.prepare(live, sorted(sampled))
    assert {job.kind for job in jobs} == {work.ROWS, work.INDEX, work.SELECTIONS}
    assert len(sampled) < len(logged)
    policy = live.policy
    secrets = [
        window.noise_seed,
        window.log_seed,
        window.pseudonym_key,
        scenario.service.settings.store.url.encode(),
        scenario.service.settings.keys.provider_file.read_bytes().strip(),
        *(
            live.epochs.tree(1).key(slot, counter)
            for slot in range(policy.slots)
            for counter in range(policy.queries_per_account)
        ),
    ]
    for tenant in policy.tenants:
        index = live.index_of(tenant, 1)
        secrets += [bytes(row) for row in index.blindings]
        secrets += [index.salts[at : at + 32] for at in range(0, len(index.salts), 32)]
    found = b"".join(job.task for job in jobs)
    for position, each in logged.items():
        record = Record.parse(each.body)
        noise = service.mechanism.draw_noise(live, live.index_of("one", 1), record, record.nonce)
        embedding = np.array(each.openings.openings.embedding, dtype="<i2").tobytes()
        # Of sampled records both are there, so that this looks in the right place.
        assert (noise.astype("<i4").tobytes() in found) == (position in sampled)
        assert embedding in found or position not in sampled
        secrets += [each.salt, each.openings.openings.salt_q, each.openings.openings.question.data]
        if position not in sampled:
            secrets += [embedding, each.openings.selection_blinding]
    assert len(secrets) > 50
    for secret in secrets:
        for form in (secret, secret.hex().encode()):
            assert form not in found
    assert not any(job.key in found.decode("latin-1") for job in jobs)
    assert json.dumps([job.name for job in jobs]).count("tickets") == 0
