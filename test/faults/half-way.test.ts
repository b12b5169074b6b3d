import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { get, put, send } from '../support/http-client.ts';
import { cannotMount, mountTmpfs } from '../support/mounted.ts';
import { describeWhere } from '../support/needs.ts';
import { cannotTrace, slowRenames } from '../support/syscall-trace.ts';
import { until } from '../support/until.ts';

const NAMES = Array.from({ length: 6 }, (_, index) => `part-${index}`);
/** Long enough to step in between two renames on a busy machine. */
const RENAME_MS = 500;
const BOUNDARY = 'half-way';

function form(): string {
  const parts = NAMES.map((name) => `--${BOUNDARY}\r\nContent-Disposition: form-data; name="f"; filename="${name}"\r\n\r\nnew\r\n`);
  return `${parts.join('')}--${BOUNDARY}--\r\n`;
}

describeWhere(cannotMount ?? cannotTrace, 'several files on a file system that becomes read-only half-way', () => {
  it('I3: are not told to be as before while some are new; once it takes writes again all are new, and the record says so', async () => {
    const mount = mountTmpfs('size=8m');
    const directory = await newDirectory();
    onTestFinished(async () => {
      mount.unmount();
      await removeDirectory(directory);
    });
    await mkdir(join(mount.path, 'v'));
    const gateway = await GatewayProcess.start(directory, { environment: { FENCEGATE_VOLUMES: `v=${mount.path}/v` } });
    for (const name of NAMES) await put(gateway.url, `v/${name}`, 'old');
    const contents = (): Promise<string[]> => Promise.all(NAMES.map((name) => readFile(join(mount.path, 'v', name), 'utf8')));
    const slow = await slowRenames(gateway.pid, RENAME_MS);
    const answer = send(gateway.url, {
      method: 'POST',
      path: '/v1/files/v/',
      headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
      body: form(),
    });
    await until(async () => ((await contents()).filter((text) => text === 'new').length >= 2 ? true : null));
    mount.remount('ro');
    const { status, json } = await answer;
    await slow.end();
    expect([status, json['code']]).toEqual([503, 'outcome_unknown']);
    expect(new Set(await contents())).toEqual(new Set(['new', 'old']));
    mount.remount('rw');
    const operation = `/v1/operations/${String(json['operation_id'])}`;
    await until(async () => ((await get(gateway.url, operation)).json['outcome'] === 'committed' ? true : null));
    expect(await contents()).toEqual(NAMES.map(() => 'new'));
  });
});
