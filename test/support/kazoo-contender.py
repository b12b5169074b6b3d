"""Contends with a lock of kazoo for a node of the gateway: hosts, path, rounds, Lock or ReadLock or WriteLock. One line per grant and release, flushed at once."""
import sys
import uuid

from kazoo.client import KazooClient

hosts, path, rounds, kind = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
client = KazooClient(hosts=hosts, timeout=180)
client.start()
for number in range(rounds):
    lock = getattr(client, kind)(path, identifier=f"kazoo-{uuid.uuid4().hex}", extra_lock_patterns=["-lock-"])
    lock.acquire()
    print(f"in {number}", flush=True)
    # Until the test, which looks whether anybody else is inside, lets it go on.
    sys.stdin.readline()
    print(f"out {number}", flush=True)
    lock.release()
client.stop()
client.close()
