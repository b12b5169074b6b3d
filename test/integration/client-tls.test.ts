import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { FencegateClient, type FencegateClientOptions } from '../../src/client/index.ts';
import { Certificates } from '../support/certificates.ts';
import { CommandLine } from '../support/command-line.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { bearerOf, principalsFile } from '../support/volumes-gateway.ts';

/** The SDK and the command line in front of a gateway with TLS: an authority of its own, certificates as principals, bearer tokens. */

let directory: string;
let certificates: Certificates;
let plain: TestGateway;
let mutual: TestGateway;

beforeAll(async () => {
  directory = await newDirectory();
  certificates = new Certificates(directory);
  certificates.authority('ca');
  certificates.issue('server', 'localhost', 'ca');
  certificates.issue('batch', 'batch-host', 'ca');
  certificates.issue('stranger', 'stranger', 'ca');
  certificates.authority('elsewhere');
  certificates.expiredAuthority('expired');
  certificates.issue('alien', 'batch-host', 'elsewhere');
  const server = { FENCEGATE_TLS_CERT: certificates.file('server.crt'), FENCEGATE_TLS_KEY: certificates.file('server.key') };
  const auth = principalsFile([
    { name: 'batch-host', roles: ['admin'] },
    { name: 'looker', roles: ['reader'] },
  ]);
  plain = await startGateway({ environment: server, auth });
  mutual = await startGateway({ environment: { ...server, FENCEGATE_TLS_CLIENT_CA: certificates.file('ca.crt') }, auth });
});

afterAll(async () => {
  for (const gateway of [plain, mutual]) {
    await gateway.stop();
    await removeDirectory(gateway.directory);
  }
  await removeDirectory(directory);
});

function client(url: string, options: FencegateClientOptions): FencegateClient {
  const made = new FencegateClient({ url, clientId: 'sdk', sessionTtlMs: 3_600_000, ...options });
  onTestFinished(() => made.close());
  return made;
}

const ca = () => certificates.pem('ca.crt');
const own = (name: string) => ({ ca: ca(), cert: certificates.pem(`${name}.crt`), key: certificates.pem(`${name}.key`) });

/** Every way in which the client reaches the gateway: requests, uploads of both kinds, downloads, streams of events. */
async function useAll(one: FencegateClient, resource: string): Promise<void> {
  const events: string[] = [];
  const watching = (async () => {
    for await (const { type } of one.watch({ resource }, { afterSeq: 0 })) {
      events.push(type);
      if (type === 'released') return;
    }
  })();
  await one.withLease(resource, {}, async (lease) => {
    await lease.put(resource, Readable.from(['through ', 'TLS']));
    await lease.confirm();
    await lease.append(resource, '.');
  });
  await watching;
  expect(events.at(-1)).toBe('released');
  expect(await (await one.get(resource)).text()).toBe('through TLS.');
  await one.delete(resource);
  // Long before a heartbeat is due: only the stream of losses can tell.
  const doomed = await one.lease(resource, { ttlMs: 3_600_000 });
  const lost = new Promise((resolve) => doomed.signal.addEventListener('abort', () => resolve(doomed.signal.reason), { once: true }));
  await one.breakLock(resource, { reason: 'a test' });
  expect(await lost).toMatchObject({ code: 'lease_lost', members: { reason: 'broken', lost_by: 'gateway' } });
}

describe('an authority of its own', () => {
  it('is known to a client that is told of it, and everything goes over TLS with a bearer token', async () => {
    await useAll(client(plain.url, { tls: { ca: ca() }, authToken: bearerOf('batch-host') }), 'v/own-ca');
  });

  it('lets nobody be taken for the gateway who is not', async () => {
    const trusting = client(plain.url, { authToken: bearerOf('batch-host') });
    await expect(trusting.volumes({ signal: AbortSignal.timeout(20_000) })).rejects.toMatchObject({ code: 'gateway_unreachable' });
  });

  it('is not asked for over plain HTTP', () => {
    expect(() => new FencegateClient({ url: 'http://127.0.0.1:1', tls: { ca: ca() } })).toThrow(TypeError);
    expect(() => new FencegateClient({ url: 'https://127.0.0.1:1', tls: { cert: ca() } })).toThrow(TypeError);
  });
});

describe('mutual TLS', () => {
  it('makes the common name of the certificate the principal, for every kind of request', async () => {
    const batch = client(mutual.url, { tls: own('batch') });
    await useAll(batch, 'v/mutual');
    const principals = new Set<string | null>();
    for await (const { principal } of batch.audit({ path: 'mutual' })) principals.add(principal);
    expect([...principals]).toEqual(['batch-host']);
  });

  it('knows nobody by a certificate that names no principal', async () => {
    await expect(client(mutual.url, { tls: own('stranger') }).volumes()).rejects.toMatchObject({ code: 'unauthenticated' });
  });
});

/** A server that is none of ours, which counts who comes. */
async function stranger(certificate: string): Promise<{ readonly url: string; readonly came: () => number }> {
  let connections = 0;
  const server = createServer({ cert: certificates.pem(`${certificate}.crt`), key: certificates.pem(`${certificate}.key`) });
  server.on('connection', () => {
    connections += 1;
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, came: () => connections };
}

describe('what TLS refuses', () => {
  const everyWay = (one: FencegateClient): (() => Promise<unknown>)[] => [
    () => one.volumes(),
    () => one.put('v/x', 'x'),
    () => one.delete('v/x'),
    () => one.lease('v/x'),
    () => one.watch({ resource: 'v/x' })[Symbol.asyncIterator]().next(),
  ];

  it.each([
    ['no authority at all', 'elsewhere', undefined, 'its certificate is not trusted here (DEPTH_ZERO_SELF_SIGNED_CERT)'],
    ['another authority', 'server', 'elsewhere', 'its certificate is not trusted here (UNABLE_TO_VERIFY_LEAF_SIGNATURE)'],
    ['another name', 'elsewhere', 'elsewhere', 'its certificate is for another name (ERR_TLS_CERT_ALTNAME_INVALID)'],
    ['a day that is over', 'expired', 'expired', 'its certificate is out of date, or not valid yet (CERT_HAS_EXPIRED)'],
  ])('%s is told at once, by every way in, and asked for once each', async (_what, certificate, authority, says) => {
    const { url, came } = await stranger(certificate);
    const one = client(url, authority === undefined ? {} : { tls: { ca: certificates.pem(`${authority}.crt`) } });
    for (const ask of everyWay(one))
      await expect(ask()).rejects.toMatchObject({ code: 'gateway_unreachable', message: `The gateway was not reached: ${says}.`, requestId: null });
    expect(came()).toBe(5);
  });

  it('a gateway that wants a certificate says so, and one that does not know ours is asked twice at most', async () => {
    for (const ask of everyWay(client(mutual.url, { tls: { ca: ca() } })))
      await expect(ask()).rejects.toMatchObject({ code: 'gateway_unreachable', message: expect.stringContaining('it wants a certificate') });
    const alien = client(mutual.url, { tls: own('alien') });
    for (const ask of everyWay(alien))
      await expect(ask()).rejects.toMatchObject({ message: expect.stringContaining('it does not accept the certificate of its client') });
  });
});

describe('the command line', () => {
  const files = (name: string) => ({ FENCEGATE_CERT_FILE: certificates.file(`${name}.crt`), FENCEGATE_KEY_FILE: certificates.file(`${name}.key`) });
  const cli = (url: string, environment: Readonly<Record<string, string>> = {}) =>
    new CommandLine(url, directory, { FENCEGATE_CA_FILE: certificates.file('ca.crt'), ...environment });

  it('takes authority and certificate from files, and exec hands them on to its command', async () => {
    writeFileSync(join(directory, 'a.txt'), 'by certificate');
    const there = cli(mutual.url, files('batch'));
    const script = 'node "$FENCEGATE" put a.txt "$FENCEGATE_RESOURCE" && node "$FENCEGATE" get "$FENCEGATE_RESOURCE" - && node "$FENCEGATE" rm v/cli';
    const { code, stdout, stderr } = await there.run('exec', '--lock', 'v/cli', '--', 'sh', '-c', script);
    expect([code, stderr, stdout]).toEqual([0, '', expect.stringMatching(/token \d+\nby certificate$/)]);
  });

  it('says 69 at once where TLS refuses, and what to do next', async () => {
    const { url } = await stranger('elsewhere');
    const other = await new CommandLine(url, directory, { FENCEGATE_CA_FILE: certificates.file('elsewhere.crt') }).run('ls');
    expect(other).toEqual({
      code: 69,
      stdout: '',
      stderr: expect.stringMatching(
        /another name \(ERR_TLS_CERT_ALTNAME_INVALID\)\.\nfencegate: next: write a name or address that the certificate is for /,
      ),
    });
    const alien = await cli(mutual.url, files('alien')).run('ls');
    expect([alien.code, alien.stderr]).toEqual([
      69,
      expect.stringMatching(/NOT_ACCEPTED\)\.\nfencegate: next: name a certificate .* FENCEGATE_CERT_FILE/),
    ]);
  });

  it('says 77 to a stranger and to a role that is not enough, and 64 for a file that is none', async () => {
    const stranger = await cli(mutual.url, files('stranger')).run('ls');
    expect([stranger.code, stranger.stderr]).toEqual([77, expect.stringContaining('unauthenticated')]);
    const looker = cli(plain.url, { FENCEGATE_AUTH_TOKEN: bearerOf('looker') });
    expect((await looker.run('ls')).code).toBe(0);
    for (const command of [
      ['put', 'a.txt', 'v/x'],
      ['rm', 'v/x'],
      ['mv', 'v/x', 'v/y'],
      ['lease', 'acquire', 'v/x'],
      ['exec', '--lock', 'v/x', '--', 'true'],
      ['audit'],
      ['doctor'],
    ]) {
      const { code, stderr } = await looker.run(...command);
      expect([command, code]).toEqual([command, 77]);
      expect(stderr).toMatch(/^fencegate: forbidden: .*\nfencegate: next: /);
    }
    const nowhere = await cli(plain.url, { FENCEGATE_CA_FILE: '.' }).run('ls');
    expect(nowhere).toEqual({ code: 64, stdout: '', stderr: 'fencegate: FENCEGATE_CA_FILE: . cannot be read (EISDIR)\n' });
  });
});
