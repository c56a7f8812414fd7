"""Write chain.json: a chain of windows, to the byte.

Run `python tests/vectors/make_chain.py` to regenerate; the tests compare bit for bit. Written from
docs/spec (1, 5.2, 5.7, 6.1, 6.3 to 6.5, 6.7, 8.4, 8.11) alone: standard library and Ed25519,
nothing of ours.
"""

import base64
import json

from make_encoding import pack as enc
from make_integrity import START, policy_value, vkey
from make_messages import FOLDER, PROVIDER, canonical, message, public, sha, signing_key, some
from make_missing import entry, leaf, mth, path

COSIGNER = "regulator.example/cosigner"


def note(origin: str, leaves: list[bytes], label: str, time: int) -> str:
    """A checkpoint, signed by the log and cosigned (6.4, 6.5)."""
    text = f"{origin}\n{len(leaves)}\n{base64.b64encode(mth(leaves)).decode()}\n"
    cosigned = f"cosignature/v1\ntime {time}\n{text}".encode()
    blobs = {
        vkey(origin, 1, label): signing_key(label).sign(text.encode()),
        vkey(COSIGNER, 4, "cosigner"): time.to_bytes(8, "big")
        + signing_key("cosigner").sign(cosigned),
    }
    lines = ""
    for key, blob in blobs.items():
        name, key_id, _ = key.split("+", 2)
        line = base64.b64encode(bytes.fromhex(key_id) + blob).decode()
        lines += f"\N{EM DASH} {name} {line}\n"
    return f"{text}\n{lines}"


def policy(window: str, number: int, previous: str | None, log: str) -> dict[str, object]:
    value = policy_value()
    start = START + number * 200_000
    keys = value["keys"]
    assert isinstance(keys, dict)
    return {
        **value,
        "window": window,
        "start": start,
        "end": start + 86_400,
        "activation_instants": [start - 60, start + 3600, start + 90_000],
        "previous_checkpoint": previous,
        "keys": {**keys, "log": vkey(f"{PROVIDER}/ragaudit/{window}", 1, log)},
    }


def chained(
    window: str, number: int, previous: str | None, log: str = ""
) -> tuple[dict[str, object], str]:
    """A window of the chain as it was handed over, and its final checkpoint."""
    log = log or f"log {window}"
    value = policy(window, number, previous, log)
    digest, salt = sha("policy", canonical(value)), some(f"opening salt {window}")
    tenant = enc(
        "ragaudit/v1/opening/tenant", "clinic-a", 1, 5, some("index root"), some("index proof")
    )
    body = enc("ragaudit/v1/entry/opening", digest, some("embedder"), None, tenant)
    leaves = [leaf(entry(salt, "opening", body)), *(leaf(b"%d" % i) for i in range(4 + number))]
    origin = f"{PROVIDER}/ragaudit/{window}"
    final = note(origin, leaves, log, START + number * 200_000 + 86_401)
    hashes = "".join(base64.b64encode(each).decode() + "\n" for each in path(0, leaves))
    countersignature = message(
        "countersignature",
        {
            "window": window,
            "policy_digest": digest,
            "opening_digest": sha("opening-digest", salt, body),
            "terms_digest": some("terms digest"),
            "activation_anchor": some("activation anchor"),
            "time": 1000 * (START + number * 200_000 - 3600),
        },
    )
    shown: dict[str, object] = {
        "policy": value,
        "countersignature": countersignature,
        "opening": {"index": 0, "salt": salt.hex(), "body": body.hex()},
        "proof": f"c2sp.org/tlog-proof@v1\nindex 0\n{hashes}\n{final}",
    }
    return shown, final


def build() -> dict[str, bytes]:
    """Return file name -> content."""
    first, end = chained("w1", 0, None)
    second, other_end = chained("w2", 1, end)
    third, _ = chained("w3", 2, other_end)
    chain = {
        "format": "ragaudit/v1/window-chain",
        "provider": PROVIDER,
        "windows": [first, second, {**third, "proof": None}],
    }
    document = {
        "origin": "tests/vectors/make_chain.py, from docs/spec alone",
        "verifier": public(signing_key("verifier key")).hex(),
        "chain": canonical(chain).decode(),
        "sizes": [5, 6, None],
    }
    return {"chain.json": (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()}


if __name__ == "__main__":
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
