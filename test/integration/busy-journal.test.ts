import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, textOf, verdictOf } from '../support/gateway-client.ts';
import { quietSnapshot, volumeSnapshot } from '../support/volume-snapshot.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

let gateway: VolumesGateway;
beforeAll(async () => {
  gateway = await startVolumes();
});
afterAll(() => gateway.stop());

/** Another process that holds SQLite's write lock, as an administrator's shell would. Gives the function that ends it. */
async function holdWriteLock(file: string): Promise<() => Promise<void>> {
  const script = `const db = new (require('better-sqlite3'))(process.argv[1]); db.exec('BEGIN IMMEDIATE'); process.stdout.write('held'); process.stdin.once('end', () => { db.exec('ROLLBACK'); db.close(); }).resume();`;
  const child = spawn(process.execPath, ['-e', script, file], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return async () => {
    const ended = once(child, 'exit');
    child.stdin.end();
    await ended;
  };
}

describe('B26: while another process holds the write lock of the database', () => {
  it('writes and leases are 503 and change nothing, reads go on without a pause, and then all is well again', async () => {
    const { client } = gateway;
    await client.put('v/kept', 'kept');
    const before = await quietSnapshot(gateway.path('v'));
    const letGo = await holdWriteLock(join(gateway.directory, 'data', 'journal.sqlite'));
    const slow = { 'x-lock-wait-ms': '60000' };
    const writes = [
      client.put('v/kept', 'x', slow),
      client.put('v/new', 'x', { 'if-none-match': '*' }),
      client.patch('v/kept', 'append', 'x'),
      client.delete('v/kept'),
      client.post('/v1/leases', { resource: 'v/leased' }),
    ];
    for (let i = 0; i < 20; i += 1) expect(textOf(await client.get('v/kept'))).toBe('kept');
    for (const answer of await Promise.all(writes))
      expect([verdictOf(answer), Number(answer.headers['retry-after']) >= 1]).toEqual(['503 journal_unavailable', true]);
    expect((await client.send('GET', '/v1/audit', { query: { path: 'kept' } })).status).toBe(200);
    expect((await client.send('GET', '/healthz')).status).toBe(200);
    expect(await quietSnapshot(gateway.path('v'))).toEqual(before);
    expect(volumeSnapshot(gateway.path('v'))).toEqual(before);
    await letGo();
    await eventually(
      () => client.put('v/kept', 'after'),
      ({ status }) => status === 200,
    );
    expect((await client.send('GET', '/v1/audit/verify')).bytes.toString()).toContain('"valid":true');
  });
});
