"""Contends with kazoo's own Lock for a node of the gateway: hosts, path, rounds. One line per grant and release, flushed at once."""
import sys
import uuid

from kazoo.client import KazooClient

hosts, path, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
client = KazooClient(hosts=hosts, timeout=20)
client.start()
for number in range(rounds):
    lock = client.Lock(path, identifier=f"kazoo-{uuid.uuid4().hex}", extra_lock_patterns=["-lock-"])
    lock.acquire()
    print(f"in {number}", flush=True)
    # Until the test, which looks whether anybody else is inside, lets it go on.
    sys.stdin.readline()
    print(f"out {number}", flush=True)
    lock.release()
client.stop()
client.close()
