"""A lease, a write under it, and what a late writer gets: Python's standard library only.

Run against a gateway with: FENCEGATE_URL=http://127.0.0.1:8080 python3 examples/python_stdlib.py [volume/path]
"""

import json
import os
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager

URL = os.environ.get("FENCEGATE_URL", "http://127.0.0.1:8080")
AUTH_TOKEN = os.environ.get("FENCEGATE_AUTH_TOKEN")


class Refused(Exception):
    """A refusal of the gateway. `code` is stable, such as `stale_token`; `problem` is the whole RFC 9457 document."""

    def __init__(self, problem):
        super().__init__(problem["detail"])
        self.code = problem["code"]
        self.problem = problem


def call(method, path, body=None, headers=None, timeout_s=90):
    """One request; answers with its JSON, or None. A dict is sent as JSON, bytes as they are. Raises Refused."""
    sent = dict(headers or {})
    if AUTH_TOKEN:
        sent["Authorization"] = f"Bearer {AUTH_TOKEN}"
    if isinstance(body, dict):
        sent["Content-Type"] = "application/json"
        body = json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data=body, headers=sent, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            content = answer.read()
            return json.loads(content) if content and "json" in answer.headers["Content-Type"] else content
    except urllib.error.HTTPError as error:
        raise Refused(json.load(error)) from None


def files(resource):
    return "/v1/files/" + urllib.parse.quote(resource)


@contextmanager
def lease(resource, client_id, ttl_ms=30_000, wait_ms=60_000):
    """Holds `resource` for a `with` block: waits in line for up to `wait_ms`, renews every third of `ttl_ms`, releases."""
    ask = {"resource": resource, "client_id": client_id, "ttl_ms": ttl_ms, "wait_ms": wait_ms, "max_wait_ms": wait_ms}
    held = call("POST", "/v1/leases", ask)
    while held["state"] == "waiting":
        held = call("GET", f"/v1/leases/{held['lease_id']}?wait_ms={ttl_ms // 3}")
    if held["state"] != "held":
        raise RuntimeError(f"not acquired: {held['reason']}")
    over = threading.Event()

    def renew():
        while not over.wait(ttl_ms / 3_000):
            try:
                call("POST", f"/v1/leases/{held['lease_id']}/renew")
            except (Refused, OSError):
                # The next write is refused; there is nothing to undo.
                return

    renewing = threading.Thread(target=renew, daemon=True)
    renewing.start()
    try:
        yield {"X-Fencing-Token": held["fencing_token"]}
    finally:
        over.set()
        renewing.join()
        call("DELETE", f"/v1/leases/{held['lease_id']}?all=true")


def main():
    resource = sys.argv[1] if len(sys.argv) > 1 else "demo/example/python.csv"
    with lease(resource, "python") as token:
        call("PUT", files(resource), b"day,amount\n", token)
        append = {"X-Update-Range": "append", "Content-Type": "application/octet-stream"}
        call("PATCH", files(resource), b"monday,12\n", {**token, **append})
        print(f"wrote under token {token['X-Fencing-Token']}")
    # The lease is over, and its token with it, whoever still has it.
    try:
        call("PUT", files(resource), b"too late\n", token)
    except Refused as refused:
        print(f"a late write was refused: {refused.code}")
    print(call("GET", files(resource)).decode(), end="")


if __name__ == "__main__":
    main()
