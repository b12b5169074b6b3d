#!/bin/sh
# Closes a quarter: reads a ledger, adds the closing line, writes it back. Only one at a time may do so, and a run that lost its lock must not
# write. So it runs itself under a lease, and writes with the token of that lease:
#   FENCEGATE_URL=http://127.0.0.1:8080 examples/close-quarter.sh [volume/path]
# With authentication: export FENCEGATE_AUTH_TOKEN.
set -eu

ledger=${1:-demo/ledger/2026-q1.csv}

if [ "${FENCEGATE_RESOURCE:-}" != "$ledger" ]; then
  exec fencegate exec --lock "$ledger" --wait 1m --ttl 10s -- "$0" "$ledger"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fencegate get "$ledger" "$work/ledger.csv" > /dev/null
lines=$(wc -l < "$work/ledger.csv")
echo "closed,$lines lines,token $FENCEGATE_FENCING_TOKEN" >> "$work/ledger.csv"

# A path is percent-encoded in a URL: here every byte of it but the slash. The bearer token goes through a pipe: arguments can be read by everybody.
path=$(printf %s "${ledger#*/}" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g; s/%2f/\//g')
credentials() { [ -z "${FENCEGATE_AUTH_TOKEN:-}" ] || printf 'header = "Authorization: Bearer %s"\n' "$FENCEGATE_AUTH_TOKEN"; }

# Any HTTP client can do this; --fail-with-body makes curl tell a refusal from success, and the answer says why.
credentials | curl -sS --fail-with-body -K - -o "$work/answer" -T "$work/ledger.csv" \
  -H "X-Fencing-Token: ${FENCEGATE_FENCING_TOKEN:?}" "$FENCEGATE_URL/v1/files/${ledger%%/*}/$path" || {
  status=$?
  cat "$work/answer" >&2 || true
  exit "$status"
}

echo "$ledger: $lines lines closed under token $FENCEGATE_FENCING_TOKEN"
