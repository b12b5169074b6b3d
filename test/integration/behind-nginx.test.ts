import { execFile } from 'node:child_process';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { documentedLocation, Nginx } from '../support/nginx.ts';
import { TIER } from '../support/tier.ts';
import { startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** A gateway behind nginx, as many run it (docs/operations.md): a refusal that is early must still be read by the client behind it (B33). */

const MIB = 1_048_576;
let gateway: VolumesGateway;
let stale: string;
let body: string;

beforeAll(async () => {
  gateway = await startVolumes();
  const { client } = gateway;
  const first = await client.lease('v/ledger.csv');
  stale = first.fencing_token;
  await client.release(first);
  await client.lease('v/ledger.csv');
  body = join(gateway.directory, 'fifty-megabytes');
  writeFileSync(body, '');
  truncateSync(body, 50 * MIB);
});
afterAll(() => gateway.stop());

async function curl(url: string, ...headers: readonly string[]): Promise<{ readonly status: string; readonly code: unknown }> {
  const answer = join(gateway.directory, 'answer');
  const lines = headers.flatMap((header) => ['-H', header]);
  const { stdout: status } = await promisify(execFile)('curl', ['-sS', '-o', answer, '-w', '%{http_code}', ...lines, '-T', body, url]);
  return { status, code: (JSON.parse(readFileSync(answer, 'utf8')) as { code?: unknown }).code };
}

describe.each<readonly [string, string]>([
  ['is set up as documented', 'off'],
  ['reads bodies first, as it does by itself', 'on'],
])('nginx that %s', (_how, buffering) => {
  let nginx: Nginx;
  beforeAll(async () => {
    nginx = await Nginx.start(gateway.url, documentedLocation().replace('proxy_request_buffering off', `proxy_request_buffering ${buffering}`));
  });
  afterAll(() => nginx.stop());

  it('B33: a stale writer of 50 MB without Expect reads the 412, every time', async () => {
    const seen = new Map<string, number>();
    for (let round = 0; round < TIER.proxiedRounds; round += 1) {
      const { status, code } = await curl(`${nginx.url}/v1/files/v/ledger.csv`, `X-Fencing-Token: ${stale}`, 'Expect:');
      const verdict = `${status} ${String(code)}`;
      seen.set(verdict, (seen.get(verdict) ?? 0) + 1);
    }
    expect(seen.get('412 stale_token') ?? 0, JSON.stringify([...seen])).toBeGreaterThanOrEqual(Math.ceil(0.99 * TIER.proxiedRounds));
  });

  it('an admitted upload becomes the file, and its answer comes through whole', async () => {
    const { status } = await curl(`${nginx.url}/v1/files/v/through`, 'X-Client-Id: behind');
    expect(status).toBe('201');
    const head = await gateway.client.send('HEAD', '/v1/files/v/through');
    expect(head.headers['content-length']).toBe(String(50 * MIB));
    await gateway.client.delete('v/through');
  });

  it('the events of a watch come through at once', async () => {
    const opened = await fetch(`${nginx.url}/v1/watch/v/watched`);
    const reader = opened.body?.getReader();
    const lease = await gateway.client.lease('v/watched');
    let text = '';
    while (!text.includes('event: granted')) text += Buffer.from((await reader?.read())?.value ?? '').toString();
    await reader?.cancel();
    await gateway.client.release(lease);
    expect(opened.headers.get('content-type')).toMatch(/^text\/event-stream/);
  });
});
