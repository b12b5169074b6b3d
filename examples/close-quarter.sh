#!/bin/sh
# Closes a quarter: reads a ledger, adds the closing line, writes it back. Only one at a time may do so, and a run that lost its lock must not
# write. So it runs itself under a lease, and writes with the token of that lease:
#   FENCEGATE_URL=http://127.0.0.1:8080 examples/close-quarter.sh [volume/path]
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

# Any HTTP client can do this; --fail-with-body makes curl tell a refusal from success.
curl -s --fail-with-body -o /dev/null -T "$work/ledger.csv" -H "X-Fencing-Token: ${FENCEGATE_FENCING_TOKEN:?}" \
  "$FENCEGATE_URL/v1/files/$ledger"

echo "$ledger: $lines lines closed under token $FENCEGATE_FENCING_TOKEN"
