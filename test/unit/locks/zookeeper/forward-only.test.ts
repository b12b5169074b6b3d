import { beforeEach, describe, expect, it } from 'vitest';
import { ForwardOnly } from '../../../../src/locks/zookeeper/forward-only.ts';
import { FakeEnsemble, type FakeZk } from '../../../support/fake-ensemble.ts';

const EMPTY = new Uint8Array();
const OVER = { failure: 'session_over' };

let ensemble: FakeEnsemble;
let below: FakeZk;
let client: ForwardOnly;
let told: string[];
beforeEach(async () => {
  ensemble = new FakeEnsemble(() => 0);
  below = ensemble.open();
  told = [];
  client = new ForwardOnly(below, (why) => told.push(why));
  await client.create('/x', EMPTY, 'persistent');
  await client.set('/x', EMPTY, 0);
  await client.set('/x', EMPTY, 1);
});

function node() {
  const found = ensemble.nodes.get('/x');
  if (found === undefined) throw new Error('no node');
  return found;
}

describe('the answers that a session gets', () => {
  it('are none from the first change on whose number goes back, and so is every later one', async () => {
    ensemble.zxid -= 1n;
    await expect(client.set('/x', EMPTY, 2)).rejects.toMatchObject(OVER);
    ensemble.zxid -= 1n;
    await expect(client.set('/x', EMPTY, 3)).rejects.toMatchObject(OVER);
    expect(told).toHaveLength(2);
  });

  it('are none where a node has a lower version than it had, though the numbers are higher', async () => {
    ensemble.zxid += 2n ** 32n;
    node().version -= 1;
    await expect(client.get('/x')).rejects.toMatchObject(OVER);
    await expect(client.set('/x', EMPTY, node().version)).resolves.toBeDefined();
    node().version -= 2;
    await expect(client.set('/x', EMPTY, node().version)).rejects.toMatchObject(OVER);
    expect(told).toHaveLength(2);
  });

  it('are none where a node is there that was removed and made anew', async () => {
    await client.remove('/x', null);
    await client.create('/x', EMPTY, 'persistent');
    await client.get('/x');
    expect(told).toEqual([]);
    node().czxid -= 1n;
    await expect(client.get('/x')).rejects.toMatchObject(OVER);
  });

  it('are asked for again where a server only lags', async () => {
    node().version -= 1;
    const sync = below.sync.bind(below);
    below.sync = async (path) => {
      node().version += 1;
      return sync(path);
    };
    await expect(client.get('/x')).rejects.toMatchObject({ failure: 'unknown' });
    expect((await client.get('/x')).stat.version).toBe(2);
    expect(told).toEqual([]);
  });
});
