#!/bin/bash
# An anchored account without our client library: promise first, reveal only what was checked.
#
#   anchored_without_client.sh register          once, before an activation instant
#   anchored_without_client.sh promise QUESTION  ask for a promise, and check it
#   anchored_without_client.sh reveal            only if that exits with 0, within the seconds it prints
#   anchored_without_client.sh claim             at once, if reveal exits with anything but 0
#   anchored_without_client.sh submit            give the verifier the public part, signed
#
# In a folder of the account's own, which is never restored from a backup. PROVER, VERIFIER,
# VERIFIER_KEY and API_KEY are what you were given, PROVIDER is `provider` in the policy, WINDOW the
# window's name.
set -euo pipefail
umask 077
window="$PROVER/v1/windows/${WINDOW:-w1}"

get() { curl -fsS -H "Authorization: Bearer $API_KEY" "$@"; }
post() { get -H "Content-Type: application/json" "$@"; }
fetch() {
  curl -fsS "$window" -o window.json
  get "$window/account" -o account.json
}

# The value that query C reveals; of -1, the anchor (spec 5.6).
chain() {
  python3 - "$1" <<'END'
import hashlib, json, sys

policy = json.load(open("window.json"))["policy"]
pseudonym = bytes.fromhex(json.load(open("account.json"))["pseudonym"])
tag, fields = b"ragaudit/v1/nonce", [policy["window"].encode(), pseudonym, bytes(32)]
prefix = len(tag).to_bytes(2, "little") + tag + len(fields).to_bytes(2, "little")
prefix += b"".join(len(field).to_bytes(8, "little") + field for field in fields)
value = bytes.fromhex(open("chain.seed").read())
for _ in range(policy["queries_per_account"] - 1 - int(sys.argv[1])):
    value = hashlib.sha256(prefix[:-32] + value).digest()
print(value.hex())
END
}

case "$1" in
register)
  fetch
  python3 -c 'import secrets; print(secrets.token_hex(32))' > chain.seed
  key=$(ragaudit key make dispute.key --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["public"])')
  printf '{"anchor": "%s", "dispute_key": "%s"}' "$(chain -1)" "$key" > registration.json
  post -d @registration.json "$window/registration"
  echo 0 > counter
  ;;
promise)
  # Count the queries yourself: a value reveals all that come before it, so a counter that the
  # service names must not choose it.
  python3 - "$2" "$(cat counter)" > request.json <<'END'
import json, sys
print(json.dumps({"query": sys.argv[1], "top_k": 2, "counter": int(sys.argv[2])}))
END
  post -d @request.json "$window/promise" -o promise.json
  fetch
  # Signed by the policy's provider, of this request, this account and this moment, with the right
  # embedding?
  ragaudit receipt promise promise.json --request request.json --account account.json \
    --window window.json --verifier-key "$VERIFIER_KEY"
  ;;
reveal)
  C=$(cat counter)
  printf '{"counter": %d, "nonce": "%s"}' "$C" "$(chain "$C")" > reveal.json
  echo $((C + 1)) > counter # first, so that a crash reveals nothing twice
  post --max-time 20 -d @reveal.json "$window/reveal" -o answer.json
  ragaudit receipt check answer.json --window window.json --verifier-key "$VERIFIER_KEY" \
    --account account.json --promise promise.json
  ;;
claim)
  # While the verifier still takes it (`promise_life_seconds`): the provider has the value. A claim
  # too many does no harm.
  python3 - > claim.json <<'END'
import json
read = lambda name: json.load(open(name))
print(json.dumps({"promise": read("promise.json"), "nonce": read("reveal.json")["nonce"],
                  "registration": read("account.json")["registration"]}))
END
  curl -fsS -H "Content-Type: application/json" -d @claim.json \
    "$VERIFIER/v1/windows/${WINDOW:-w1}/claims?provider=$PROVIDER"
  ;;
submit)
  ragaudit receipt complete answer.json --prover "$PROVER" --verifier-key "$VERIFIER_KEY"
  ragaudit receipt submit answer.json --verifier "$VERIFIER" --key dispute.key --account account.json
  ;;
esac
