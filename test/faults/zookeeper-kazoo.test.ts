import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { TIER } from '../support/tier.ts';
import { TestEnsemble } from '../support/zookeeper-ensemble.ts';
import { ZooKeeperGateway } from '../support/zookeeper-gateway.ts';

let zookeeper: TestEnsemble;
beforeAll(async () => {
  zookeeper = await TestEnsemble.start();
});
afterAll(() => zookeeper.stop());

it('kazoo, which nobody here wrote, agrees about who holds: with both contending for one node, never are two inside', async () => {
  const gateway = await ZooKeeperGateway.start(zookeeper.connect, { zookeeperSessionMs: 20_000 });
  await gateway.release(await gateway.acquire('v/ledger'));
  const inside = new Set<string>();
  const overlaps: string[] = [];
  const enter = (who: string): void => {
    if (inside.size > 0) overlaps.push(`${who} while ${[...inside].join()}`);
    inside.add(who);
  };

  const script = fileURLToPath(new URL('../support/kazoo-contender.py', import.meta.url));
  const kazoo = spawn('/usr/bin/python3', [script, zookeeper.connect, '/locks/v/ledger', String(TIER.kazooRounds)], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  onTestFinished(() => void kazoo.kill('SIGKILL'));
  let said = '';
  kazoo.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  let grants = 0;
  createInterface(kazoo.stdout).on('line', (line) => {
    if (line.startsWith('in ')) {
      grants += 1;
      enter('kazoo');
      // One turn inside, in which the other side could err.
      setImmediate(() => kazoo.stdin.write('\n'));
    } else inside.delete('kazoo');
  });
  const ended = new Promise<number | null>((resolve) => kazoo.once('exit', resolve));

  let done = false;
  void ended.then(() => (done = true));
  let turns = 0;
  let last = 0n;
  while (!done) {
    const lease = await gateway.acquire('v/ledger', 60_000);
    if (lease.state !== 'held') break;
    enter('gateway');
    expect(BigInt(lease.fencing_token) > last).toBe(true);
    last = BigInt(lease.fencing_token);
    turns += 1;
    // What it is for: kazoo would have the time to come in.
    expect((await gateway.put('ledger', `turn ${turns}`, lease)).status).toBeLessThan(300);
    inside.delete('gateway');
    await gateway.release(lease);
  }
  expect([await ended, said]).toEqual([0, '']);
  expect(overlaps).toEqual([]);
  expect(grants).toBe(TIER.kazooRounds);
  expect(turns).toBeGreaterThan(0);
});
