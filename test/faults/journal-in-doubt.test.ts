import { statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { type Attempt, auditOf, History } from '../support/history.ts';
import { get, post, put, send } from '../support/http-client.ts';
import { describeWhere } from '../support/needs.ts';
import { cannotTrace, failSyncs } from '../support/syscall-trace.ts';
import { until } from '../support/until.ts';
import { TWO_VOLUMES, writeKinds } from '../support/write-kinds.ts';

/**
 * The journal's disk fails in the very commit: what was written of it stays in the page cache, and the next start finds it. The journal
 * cannot know that, so nobody may be told that nothing was changed where that start changes it (I4, `journal_unavailable`).
 */

/** These stage nothing that could be taken away: a start that finds their intent finishes them. */
const FINISHED_BY_RECOVERY = ['DELETE', 'MOVE', 'MOVE over a file', 'mkdir', 'rmdir'];
/** The heartbeat of the journal may come first and meet the failing disk alone; then another gateway tries. */
const TRIES_MAX = 6;

async function withDirectory(): Promise<string> {
  const directory = await newDirectory();
  onTestFinished(() => removeDirectory(directory));
  await mkdir(join(directory, 'w'));
  return directory;
}

/** From here on the journal cannot sync; right after a heartbeat, so that what the test does next is the next commit. */
async function breakJournal(gateway: GatewayProcess, directory: string): Promise<void> {
  const wal = join(directory, 'data', 'journal.sqlite-wal');
  const before = statSync(wal).mtimeMs;
  await until(async () => (statSync(wal).mtimeMs > before ? true : null));
  const failing = await failSyncs(gateway.pid, wal);
  onTestFinished(() => failing.end());
}

interface Doubt {
  readonly directory: string;
  readonly gateway: GatewayProcess;
  readonly history: History;
  readonly attempts: readonly Attempt[];
}

const codeOf = ({ answer }: Attempt): unknown => answer?.json['code'];

/** A write of each kind in one commit that fails. */
async function everyKindInDoubt(): Promise<Doubt> {
  for (let round = 1; ; round += 1) {
    const directory = await withDirectory();
    const gateway = await GatewayProcess.start(directory, { yaml: TWO_VOLUMES });
    const history = new History(directory);
    const kinds = writeKinds('doubt');
    for (const kind of kinds) await history.prepare(gateway.url, kind, false);
    await gateway.hold('6.intent');
    const attempts = kinds.map((kind) => history.begin(gateway.url, kind, null));
    await gateway.until(() => gateway.held().size === kinds.length);
    await breakJournal(gateway, directory);
    await gateway.hold(null);
    await Promise.all(attempts.map(({ done }) => done));
    if (attempts.some((one) => codeOf(one) === 'outcome_unknown')) return { directory, gateway, history, attempts };
    if (round === TRIES_MAX) throw new Error('the heartbeat was always faster');
    await gateway.kill();
  }
}

describeWhere(cannotTrace, 'a commit of the journal that fails', () => {
  it('"nothing was changed" is answered only where nothing is changed later either; the rest is outcome_unknown, and the next start settles it', async () => {
    const { directory, gateway, history, attempts } = await everyKindInDoubt();
    const [unknown, refused] = [
      attempts.filter(({ kind }) => FINISHED_BY_RECOVERY.includes(kind.name)),
      attempts.filter(({ kind }) => !FINISHED_BY_RECOVERY.includes(kind.name)),
    ];
    expect(unknown.map(codeOf)).toEqual(unknown.map(() => 'outcome_unknown'));
    expect(refused.map(codeOf)).toEqual(refused.map(() => 'journal_unavailable'));
    for (const { answer } of unknown) {
      const id = String(answer?.json['operation_id']);
      expect((await get(gateway.url, `/v1/operations/${id}`)).json).toMatchObject({ operation_id: id, outcome: 'unknown', code: 'outcome_unknown' });
    }
    for (const { requestId } of refused) expect((await get(gateway.url, `/v1/operations?request_id=${requestId}`)).status).toBe(404);
    // Nobody gets at a name whose fate is open, and a plain new write is refused for certain.
    expect((await put(gateway.url, 'v/doubt/delete.txt', 'x')).json).toMatchObject({ code: 'journal_unavailable' });
    expect((await get(gateway.url, '/v1/files/v/doubt/delete.txt')).status).toBe(200);
    const { json: report } = await get(gateway.url, '/v1/admin/doctor');
    expect(report['findings']).toContainEqual(expect.objectContaining({ code: 'outcome_unknown', resource: 'v/doubt/delete.txt', fix: null }));

    await gateway.kill();
    const again = await GatewayProcess.start(directory, { yaml: TWO_VOLUMES });
    for (const { answer } of unknown) {
      const found = await get(again.url, `/v1/operations/${String(answer?.json['operation_id'])}`);
      expect(found.json).toMatchObject({ outcome: 'committed' });
    }
    const found = await Promise.all(refused.map(({ requestId }) => auditOf(again.url, `request_id=${requestId}`)));
    const outcomes = found.flat().map(({ outcome }) => outcome);
    // The start did find intents of theirs, and had nothing to finish them with.
    expect(outcomes.length).toBeGreaterThan(0);
    expect(outcomes).toEqual(outcomes.map(() => 'aborted'));
    const became = (attempt: Attempt) => (unknown.includes(attempt) ? 'after' : 'before');
    expect(await history.check(again.url, attempts, became)).toEqual([]);
    expect(await history.writeNext(again.url, attempts)).toEqual([]);
  }, 180_000);

  it('a lease whose grant is in doubt is not answered as refused: its id is told, and after the next start it is held by whoever has the id', async () => {
    for (let round = 1; ; round += 1) {
      const directory = await withDirectory();
      const gateway = await GatewayProcess.start(directory);
      await breakJournal(gateway, directory);
      const asked = await post(gateway.url, '/v1/leases', { resource: 'v/a', ttl_ms: 600_000 });
      if (asked.json['code'] === 'journal_unavailable' && round < TRIES_MAX) {
        await gateway.kill();
        continue;
      }
      expect([asked.status, asked.json['code'], asked.headers['retry-after']]).toEqual([503, 'outcome_unknown', expect.any(String)]);
      const path = `/v1/leases/${String(asked.json['lease_id'])}`;
      for (const method of ['GET', 'DELETE']) expect((await send(gateway.url, { method, path })).json).toMatchObject({ code: 'outcome_unknown' });
      await gateway.kill();
      const again = await GatewayProcess.start(directory);
      const held = await get(again.url, path);
      expect(held.json).toMatchObject({ state: 'held', resource: 'v/a' });
      const token = String(held.json['fencing_token']);
      expect((await put(again.url, 'v/a', 'mine', { 'x-fencing-token': token })).status).toBe(201);
      expect((await send(again.url, { method: 'DELETE', path })).status).toBe(204);
      expect((await put(again.url, 'v/a', 'free again')).status).toBe(200);
      return;
    }
  }, 180_000);
});
