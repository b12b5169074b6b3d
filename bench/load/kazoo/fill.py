"""Makes resource nodes as the gateway leaves them, many at a time: hosts, the volume's node, how many."""
import sys

from kazoo.client import KazooClient

hosts, volume, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
BATCH = 1000
LEFT = b'{"v":1,"holders":[],"upgrade":null,"break":[],"delay_ms":null,"delay_until":null,"clean":true}'

client = KazooClient(hosts=hosts, timeout=30)
client.start()
for first in range(0, count, BATCH):
    made = [client.create_async(f"{volume}/files%2F{index % 1000}%2Ffile-{index}", LEFT) for index in range(first, min(first + BATCH, count))]
    for one in made:
        one.get()
client.stop()
client.close()
