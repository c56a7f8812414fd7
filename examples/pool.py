"""Ask through several accounts at once: whichever is free, each with its own budget and chain.

PROVER, VERIFIER, VERIFIER_KEY, WINDOW and API_KEYS (apart by spaces) are what you were given; STATE
is a folder of this machine that is never restored from a backup. Run it with ``python pool.py``.
"""

import asyncio
import os

from ragaudit.client import AsyncClient, AsyncPool


async def ask_all(questions: list[str]) -> list[str]:
    clients = [
        AsyncClient(
            os.environ["PROVER"],
            key,
            window=os.environ["WINDOW"],
            verifier_url=os.environ["VERIFIER"],
            verifier_key=os.environ["VERIFIER_KEY"],
            state_dir=f"{os.environ['STATE']}/{number}",
        )
        for number, key in enumerate(os.environ["API_KEYS"].split())
    ]
    async with AsyncPool(clients) as pool:
        await pool.register()
        results = await asyncio.gather(*(pool.search(question) for question in questions))
        await pool.submit([each.receipt for each in results])
        return [document.id for each in results for document in each.documents]


if __name__ == "__main__":
    print(len(asyncio.run(ask_all(["first?", "second?"]))), "documents")
