"""Clients of kazoo that take and release locks in a closed loop, each on a connection of its own.

Arguments: hosts, clients, "own" (each client has one path, known before) or "new" (a path never seen for each lock), warm-up ms, measured ms.
Says "ready", waits for a line, and prints one JSON object: the times of the acquisitions that count, ms; all cycles; its own processor time, s.
"""
import json
import sys
import threading
import time
import uuid

from kazoo.client import KazooClient

hosts, count, names, warm_up_ms, measured_ms = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4]), float(sys.argv[5])
RUN = uuid.uuid4().hex


class Loop(threading.Thread):
    def __init__(self, index):
        super().__init__(daemon=True)
        self.client = KazooClient(hosts=hosts, timeout=30)
        self.client.start()
        self.path = f"/kazoo/{RUN}-{index}"
        self.lock = self.client.Lock(self.path)
        self.times, self.cycles, self.problem = [], 0, None
        with self.lock:
            pass

    def run(self):
        try:
            while time.perf_counter() < until:
                self.cycle()
        except Exception as problem:  # A figure made of errors is no figure.
            self.problem = repr(problem)

    def cycle(self):
        lock = self.lock if names == "own" else self.client.Lock(f"{self.path}-{self.cycles}")
        begun = time.perf_counter()
        if not lock.acquire():
            raise RuntimeError("kazoo did not give the lock")
        taken = time.perf_counter()
        lock.release()
        self.cycles += 1
        if start + warm_up_ms / 1000 <= time.perf_counter() < until:
            self.times.append((taken - begun) * 1000)


loops = [Loop(index) for index in range(count)]
print("ready", flush=True)
sys.stdin.readline()
cpu = time.process_time()
start = time.perf_counter()
until = start + (warm_up_ms + measured_ms) / 1000
for loop in loops:
    loop.start()
for loop in loops:
    loop.join()
problem = next((loop.problem for loop in loops if loop.problem is not None), None)
times = [one for loop in loops for one in loop.times]
print(json.dumps({"problem": problem, "times": times, "cycles": sum(loop.cycles for loop in loops), "cpu": time.process_time() - cpu}), flush=True)
for loop in loops:
    loop.client.stop()
    loop.client.close()
