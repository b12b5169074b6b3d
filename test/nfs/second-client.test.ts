import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { removeDirectory } from '../support/gateway-settings.ts';
import { attempt, get, put } from '../support/http-client.ts';
import { SECOND_CLIENT } from '../support/nfs-control.ts';
import { TIER } from '../support/tier.ts';
import { onTheServer, VOLUME_BASE } from '../support/volume-base.ts';
import { volumesOpen } from '../support/volumes-open.ts';

/** Others use the export as well, through a client that knows nothing of ours. */

let gateway: TestGateway;
let elsewhere: string;

beforeAll(async () => {
  gateway = await startGateway();
  await volumesOpen(gateway.url);
  elsewhere = gateway.volume.replace(VOLUME_BASE, SECOND_CLIENT);
  readdirSync(elsewhere);
});
afterAll(async () => {
  await gateway.stop();
  await removeDirectory(gateway.directory);
});

/** What the doctor says was changed behind the gateway's back. */
async function reported(): Promise<(string | null)[]> {
  const { findings } = (await get(gateway.url, '/v1/admin/doctor')).json as { findings: { code: string; resource: string | null }[] };
  return findings.filter(({ code }) => code === 'file_changed_behind_gateway').map(({ resource }) => resource);
}

describe('a writer that bypasses the gateway', () => {
  it.each([
    ['writes into the file', (path: string, text: string) => writeFileSync(path, text)],
    [
      'replaces the file',
      (path: string, text: string) => {
        writeFileSync(`${path}.new`, text);
        renameSync(`${path}.new`, path);
      },
    ],
  ])('that %s is noticed at the next write: the old tag is refused, and the doctor reports it', async (how, change) => {
    const name = `${how.replaceAll(' ', '-')}.txt`;
    const written = await put(gateway.url, `v/${name}`, 'through the gateway');
    change(join(elsewhere, name), 'behind its back');
    const refused = await put(gateway.url, `v/${name}`, 'onto what is not there', { 'if-match': String(written.headers['etag']) });
    expect([refused.status, refused.json['code']]).toEqual([412, 'precondition_failed']);
    const served = await get(gateway.url, `/v1/files/v/${name}`);
    expect([served.text, served.headers['etag'] === written.headers['etag']]).toEqual(['behind its back', false]);
    expect(await reported()).toContain(`v/${name}`);
  });

  it('and two of them against a writer with the tag: the old tag is refused in every round, the doctor reports it, and unseen bytes are never overwritten', async () => {
    let tag = String((await put(gateway.url, 'v/raced.txt', 'start')).headers['etag']);
    for (let round = 0; round < TIER.raceRounds; round += 1) {
      const mine = await put(gateway.url, 'v/raced.txt', `gateway ${round}`, { 'if-match': tag });
      expect(mine.status).toBe(200);
      // Else their client may still take the file that was replaced for this one, and write where nobody reads any more.
      readdirSync(elsewhere);
      for (const writer of ['one', 'two']) writeFileSync(join(elsewhere, 'raced.txt'), `${writer} ${round}`);
      const refused = await put(gateway.url, 'v/raced.txt', 'lost update', { 'if-match': String(mine.headers['etag']) });
      expect([round, refused.status]).toEqual([round, 412]);
      expect(await reported()).toContain('v/raced.txt');
      expect(readFileSync(onTheServer(join(gateway.volume, 'raced.txt')), 'utf8')).toBe(`two ${round}`);
      tag = String((await put(gateway.url, 'v/raced.txt', `seen ${round}`)).headers['etag']);
    }
  });
});

describe('a reader of the gateway', () => {
  it('X10: gets one version whole under its own tag, or is cut or told to come again, while another client replaces the file', async () => {
    const path = join(elsewhere, 'read.txt');
    const content = (version: number): string => `${version};`.repeat(50_000);
    writeFileSync(path, content(0));
    const tags = new Map<string, string>();
    for (let version = 1; version <= TIER.raceRounds; version += 1) {
      writeFileSync(`${path}.new`, content(version));
      const reading = Array.from({ length: 4 }, () => attempt(gateway.url, { method: 'GET', path: '/v1/files/v/read.txt' }));
      renameSync(`${path}.new`, path);
      for (const answer of await Promise.all(reading)) {
        if (answer === null || answer.status === 503) continue;
        const read = answer.text.slice(0, answer.text.indexOf(';'));
        expect([version, answer.status, answer.text === content(Number(read))]).toEqual([version, 200, true]);
        // A weak tag may become a strong one, of the same version.
        const tag = String(answer.headers['etag']).replace('W/', '');
        expect([version, tags.get(read) ?? tag]).toEqual([version, tag]);
        tags.set(read, tag);
      }
    }
    expect((await get(gateway.url, '/v1/files/v/read.txt')).text).toBe(content(TIER.raceRounds));
  });
});

describe('a reader on another client', () => {
  it(`I3: sees old or new bytes and never a mixture, over ${TIER.nfsReplaces} replaces`, async () => {
    const size = 20_000;
    const path = join(elsewhere, 'replaced.txt');
    const content = (version: number): string => String.fromCharCode(97 + (version % 26)).repeat(size);
    await put(gateway.url, 'v/replaced.txt', content(0));
    let reads = 0;
    for (let version = 1; version <= TIER.nfsReplaces; version += 1) {
      let over = false;
      const replacing = put(gateway.url, 'v/replaced.txt', content(version)).then((answer) => {
        over = true;
        return answer;
      });
      while (!over) {
        const text = readOnce(path);
        reads += 1;
        // Which version it is may lag behind, for as long as the client believes what it remembers of the directory (acdirmin, 30 s), which
        // may be longer than all of this takes; that it is one, and whole, may not.
        if (text !== null && text !== text.charAt(0).repeat(size)) expect.fail(`version ${version}: ${text.length} bytes that are no version`);
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect((await replacing).status).toBe(200);
    }
    expect(reads).toBeGreaterThanOrEqual(TIER.nfsReplaces);
  });
});

/** `null`: the file was replaced between its opening and its reading, and the old one is gone from the server (v3). */
function readOnce(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (thrown) {
    if (thrown instanceof Error && 'errno' in thrown && thrown.errno === -116) return null;
    throw thrown;
  }
}
