import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cutUnderAnchor, forgetKeyedPart, recomputePlain } from '../support/forge-journal.ts';
import { jsonOf } from '../support/gateway-client.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** Whoever changes the database file while the gateway is down is found out by `verify`. */

let directory: string;
beforeEach(async () => {
  directory = await newDirectory();
});
afterEach(() => removeDirectory(directory));

const start = (settings: Record<string, unknown> = {}): Promise<VolumesGateway> => startVolumes({ directory, settings });
const verify = async (gateway: VolumesGateway): Promise<unknown> => jsonOf(await gateway.client.send('GET', '/v1/audit/verify'));

async function write(gateway: VolumesGateway): Promise<number> {
  for (const body of ['1', '2', '3', '4', '5']) await gateway.client.put('v/ledger', body);
  await gateway.client.put('v/ledger', 'x', { 'if-match': '"never"' });
  return (await gateway.client.audit({ limit: 1 }))[0]?.seq ?? 0;
}

function databaseFile(): string {
  const name = readdirSync(join(directory, 'data')).find((one) => /\.(db|sqlite|sqlite3)$/.test(one));
  return join(directory, 'data', name ?? 'missing');
}

/** The table that has the records, by its columns. */
function tamper(change: (database: Database.Database, table: string) => void): void {
  const database = new Database(databaseFile());
  const tables = database.prepare(`SELECT name FROM sqlite_master WHERE type = 'table'`).pluck().all() as string[];
  const table = tables.find((name) =>
    ['seq', 'hash', 'previous_hash'].every((column) =>
      (database.pragma(`table_info(${name})`) as { name: string }[]).some((one) => one.name === column),
    ),
  );
  for (const trigger of database.prepare(`SELECT name FROM sqlite_master WHERE type = 'trigger'`).pluck().all() as string[])
    database.exec(`DROP TRIGGER ${trigger}`);
  change(database, table ?? 'missing');
  database.close();
}

describe('tampering with the database file', () => {
  it('is found at its place: another path, outcome, principal or count, and a record less', async () => {
    const changes: ((table: string) => string)[] = [
      (table) => `UPDATE ${table} SET path = 'other'`,
      (table) => `UPDATE ${table} SET outcome = 'rejected'`,
      (table) => `UPDATE ${table} SET principal = 'somebody'`,
      (table) => `DELETE FROM ${table}`,
      (table) => `UPDATE ${table} SET count = 2`,
    ];
    const first = await start();
    for (const _change of changes) await write(first);
    await first.halt();
    const seqs = changes.map((_change, i) => 4 + 5 * i);
    tamper((database, table) => {
      for (const [i, change] of changes.entries()) database.exec(`${change(table)} WHERE seq = ${seqs[i]}`);
    });
    const second = await start();
    for (const seq of seqs) {
      const report = jsonOf(await second.client.send('GET', '/v1/audit/verify', { query: { from_seq: seq - 3 } }));
      expect(report).toMatchObject({ valid: false, first_bad_seq: seq });
    }
    await second.halt();
  });

  it('a tail that was cut off shows in the head that was told before', async () => {
    const first = await start();
    const last = await write(first);
    const told = jsonOf<{ journal: { head_seq: number; head_hash: string } }>(await first.client.send('GET', '/readyz')).journal;
    expect(told.head_seq).toBe(last);
    await first.halt();
    tamper((database, table) => database.exec(`DELETE FROM ${table} WHERE seq > ${last - 2}`));
    const second = await start();
    const records = await second.client.audit({ limit: 1_000 });
    const report = (await verify(second)) as { valid: boolean };
    expect(report.valid === false || records.every((record) => record['hash'] !== told.head_hash)).toBe(true);
    await second.halt();
  });

  it('with a key, a chain that was computed anew without it is found', async () => {
    const settings = { audit: { key_file: join(directory, 'audit.key') } };
    writeFileSync(join(directory, 'audit.key'), 'k'.repeat(64), { mode: 0o600 });
    const first = await start(settings);
    await write(first);
    expect(await verify(first)).toMatchObject({ valid: true });
    await first.halt();
    const second = await start();
    const report = await verify(second);
    await second.halt();
    expect(report).toMatchObject({ valid: false });
    const third = await start(settings);
    const again = await verify(third);
    await third.halt();
    expect(again).toMatchObject({ valid: false, first_bad_seq: expect.any(Number) });
  });

  describe('by somebody without the key that is configured', () => {
    const keyed = (): Record<string, unknown> => ({ audit: { key_file: join(directory, 'audit.key') } });
    beforeEach(() => writeFileSync(join(directory, 'audit.key'), 'k'.repeat(64), { mode: 0o600 }));

    async function afterForgery(forge: (database: Database.Database, last: number) => void): Promise<unknown> {
      const first = await start(keyed());
      const last = await write(first);
      expect(await verify(first)).toMatchObject({ valid: true, keyed_from_seq: 1 });
      await first.halt();
      tamper((database) => forge(database, last));
      const second = await start(keyed());
      const report = await verify(second);
      await second.halt();
      return report;
    }

    it('a history rewritten with plain hashes is found', async () => {
      const report = await afterForgery((database) => {
        database.exec("UPDATE audit SET principal = 'innocent' WHERE seq = 3");
        recomputePlain(database);
      });
      expect(report).toMatchObject({ valid: false, first_bad_seq: 1, keyed_from_seq: 1 });
    });

    it('a beginning cut off under a plain anchor is found, also when the statement of the keyed part is gone with it', async () => {
      expect(await afterForgery((database) => cutUnderAnchor(database, 3))).toMatchObject({ valid: false, first_bad_seq: 4 });
      await removeDirectory(directory);
      directory = await newDirectory();
      writeFileSync(join(directory, 'audit.key'), 'k'.repeat(64), { mode: 0o600 });
      const report = await afterForgery((database) => {
        cutUnderAnchor(database, 3);
        forgetKeyedPart(database);
      });
      expect(report).toMatchObject({ valid: false, keyed_from_seq: null });
    });

    it('who takes everything keyed away, so that the key seems new, shows by where the chain is keyed from', async () => {
      let last = 0;
      const report = await afterForgery((database, seq) => {
        last = seq;
        recomputePlain(database);
        forgetKeyedPart(database);
      });
      expect(report).toMatchObject({ valid: true, keyed_from_seq: last + 1 });
    });
  });
});
