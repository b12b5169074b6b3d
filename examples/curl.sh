#!/usr/bin/env bash
# A lease, a write under it, and what a late writer gets: with nothing but curl.
# Run against a gateway with: FENCEGATE_URL=http://127.0.0.1:8080 bash examples/curl.sh [volume/path]
set -euo pipefail

url=${FENCEGATE_URL:-http://127.0.0.1:8080}
resource=${1:-demo/example/curl.csv}
# With authentication: export FENCEGATE_AUTH_TOKEN; it goes through a pipe, as arguments can be read by everybody.
credentials() { [ -z "${FENCEGATE_AUTH_TOKEN:-}" ] || printf 'header = "Authorization: Bearer %s"\n' "$FENCEGATE_AUTH_TOKEN"; }
# curl ends with 22 on a refusal only because of --fail-with-body.
call() { curl -sS --fail-with-body -K <(credentials) "$@"; }
# A path is percent-encoded in a URL: here every byte of it but the slash. In JSON quotes and backslashes are escaped.
file=$url/v1/files/${resource%%/*}/$(printf %s "${resource#*/}" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g; s/%2f/\//g')
name=$(sed 's/[\\"]/\\&/g' <<< "$resource")
field() { sed -E "s/.*\"$1\":\"([^\"]*)\".*/\1/"; }

# Stand in line for up to a minute. The lease lives for 30 seconds from each renewal.
lease=$(call "$url/v1/leases" -H 'Content-Type: application/json' -d "{\"resource\":\"$name\",\"ttl_ms\":30000,\"wait_ms\":60000,\"client_id\":\"curl\"}")
id=$(field lease_id <<< "$lease")
token=$(field fencing_token <<< "$lease")
trap 'call -X DELETE "$url/v1/leases/$id?all=true"' EXIT

# ${token:?}: curl sends no header for an empty value, and the write would count as one without a token.
printf 'day,amount\n' | call -T - -H "X-Fencing-Token: ${token:?}" -o /dev/null "$file"
printf 'monday,12\n' | call -X PATCH --data-binary @- -H 'Content-Type: application/octet-stream' -H 'X-Update-Range: append' \
  -H "X-Fencing-Token: ${token:?}" -o /dev/null "$file"
echo "wrote under token $token"

# Work that takes longer renews; 409 lease_not_held means: stop writing.
call -X POST -o /dev/null "$url/v1/leases/$id/renew"

# An operator breaks the lease; whoever goes on with its token is refused, before a byte of the body is read.
call -o /dev/null "$url/v1/admin/locks/break" -H 'Content-Type: application/json' -d "{\"resource\":\"$name\",\"reason\":\"example\",\"grace_ms\":0}"
if refused=$(printf 'too late\n' | call -T - -H "X-Fencing-Token: ${token:?}" "$file"); then
  echo 'a dead token was accepted' >&2
  exit 1
fi
echo "a late write was refused: $(field code <<< "$refused")"
call "$file"
