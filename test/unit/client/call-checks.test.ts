import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { isInvalidArgument } from '../../../src/client/call-checks.ts';
import { FencegateClient } from '../../../src/client/fencegate-client.ts';
import { type ClientLab, clientLab, held } from '../../support/client-lab.ts';

/** As a program in JavaScript calls it: nothing was compared with the types. */
// biome-ignore lint/suspicious/noExplicitAny: that is the point here
type Untyped = any;
type Call = (client: Untyped) => unknown;

const cycle: Record<string, unknown> = {};
cycle['self'] = cycle;

/** A call, the class of its error, and the argument that the message begins with. */
const CALLS: readonly (readonly [string, typeof TypeError | typeof RangeError, string, Call])[] = [
  ['a resource that is a number', TypeError, 'resource', (c) => c.lease(5)],
  ['no resource', TypeError, 'resource', (c) => c.lease()],
  ['a list of no resources', RangeError, 'resource', (c) => c.lease([])],
  ['a list with a hole', TypeError, 'resource', (c) => c.lease(['v/a', null])],
  ['a negative wait', RangeError, 'waitMs', (c) => c.lease('v/a', { waitMs: -1 })],
  ['a wait that is no number', RangeError, 'waitMs', (c) => c.lease('v/a', { waitMs: Number.NaN })],
  ['an endless wait', RangeError, 'waitMs', (c) => c.lease('v/a', { waitMs: Number.POSITIVE_INFINITY })],
  ['a wait in words', TypeError, 'waitMs', (c) => c.lease('v/a', { waitMs: '5s' })],
  ['a negative time to live', RangeError, 'ttlMs', (c) => c.lease('v/a', { ttlMs: -1 })],
  ['a part of a millisecond to live', RangeError, 'ttlMs', (c) => c.lease('v/a', { ttlMs: 1_000.5 })],
  ['a longest hold of null', TypeError, 'maxHoldMs', (c) => c.lease('v/a', { maxHoldMs: null })],
  [
    'a longest hold that the margin uses up',
    RangeError,
    'maxHoldMs must be more than 3000',
    (c) => c.lease('v/a', { maxHoldMs: 3_000, marginMs: 3_000 }),
  ],
  ['a longest hold that any margin uses up', RangeError, 'maxHoldMs must be more than 100', (c) => c.lease('v/a', { maxHoldMs: 100 })],
  ['a margin over half of the time to live', RangeError, 'marginMs must be at most half', (c) => c.lease('v/a', { ttlMs: 8_000, marginMs: 4_001 })],
  ['a margin over half of what the gateway gives', RangeError, 'marginMs', (c) => c.withLease('v/a', { marginMs: 15_001 }, () => 1)],
  ['a priority of 10', RangeError, 'priority', (c) => c.lease('v/a', { priority: 10 })],
  ['a negative lock-delay', RangeError, 'lockDelayMs', (c) => c.lease('v/a', { lockDelayMs: -1 })],
  ['a negative margin', RangeError, 'marginMs', (c) => c.lease('v/a', { marginMs: -1 })],
  ['metadata in a list', TypeError, 'metadata', (c) => c.lease('v/a', { metadata: [1] })],
  ['metadata that is no JSON', TypeError, 'metadata', (c) => c.lease('v/a', { metadata: cycle })],
  ['metadata with a bigint', TypeError, 'metadata', (c) => c.lease('v/a', { metadata: { n: 1n } })],
  ['no such mode', TypeError, 'mode', (c) => c.lease('v/a', { mode: 'sharde' })],
  ['a signal that is a controller', TypeError, 'signal', (c) => c.lease('v/a', { signal: new AbortController() })],
  ['options that are null', TypeError, 'options', (c) => c.lease('v/a', null)],
  ['an option that is misspelt', TypeError, 'there is no option wait;', (c) => c.lease('v/a', { wait: 0 })],
  ['an option with the name of a method of objects', TypeError, 'there is no option toString;', (c) => c.lease('v/a', { toString: 0 })],
  ['work that is none', TypeError, 'work', (c) => c.withLease('v/a', {})],
  ['options left out', TypeError, 'work', (c) => c.withLease('v/a', async () => undefined)],
  ['a body that is a number', TypeError, 'body', (c) => c.put('v/a', 5)],
  ['no body', TypeError, 'body', (c) => c.put('v/a')],
  ['a body that is an object', TypeError, 'body', (c) => c.put('v/a', { text: 'x' })],
  ['a body that is a buffer of numbers', TypeError, 'body', (c) => c.put('v/a', new Uint16Array(2))],
  ['a name that is a number', TypeError, 'resource', (c) => c.put(5, 'x')],
  ['a length that is negative', RangeError, 'sizeBytes', (c) => c.put('v/a', Readable.from(['x']), { sizeBytes: -1 })],
  ['a digest that is none', TypeError, 'sha256', (c) => c.put('v/a', 'x', { sha256: 'abc' })],
  ['a key that no header can hold', TypeError, 'idempotencyKey', (c) => c.put('v/a', 'x', { idempotencyKey: 'a\nb' })],
  ['an ETag that is a number', TypeError, 'ifMatch', (c) => c.put('v/a', 'x', { ifMatch: 1 })],
  ['a progress that cannot be called', TypeError, 'onProgress', (c) => c.put('v/a', 'x', { onProgress: true })],
  ['a wait for the lock that is negative', RangeError, 'lockWaitMs', (c) => c.delete('v/a', { lockWaitMs: -1 })],
  ['an offset that is negative', RangeError, 'offset', (c) => c.append('v/a', 'x', { offset: -1 })],
  ['an option of put for append', TypeError, 'there is no option contentType;', (c) => c.append('v/a', 'x', { contentType: 'text/plain' })],
  ['a place in a file that is negative', RangeError, 'startBytes', (c) => c.writeRange('v/a', -1, 'x')],
  ['a place in a file that is left out', TypeError, 'startBytes', (c) => c.writeRange('v/a', 'x')],
  ['a target that is left out', TypeError, 'to', (c) => c.move('v/a')],
  ['overwrite in words', TypeError, 'overwrite', (c) => c.copy('v/a', 'v/b', { overwrite: 'yes' })],
  ['a directory that is none', TypeError, 'directory', (c) => c.makeDirectory(null)],
  ['files that are no list', TypeError, 'files', (c) => c.upload('v/d/', { name: 'a', body: 'x' })],
  ['a file without a name', TypeError, 'the name of a file', (c) => c.upload('v/d/', [{ body: 'x' }])],
  ['a file without a body', TypeError, 'body', (c) => c.upload('v/d/', [{ name: 'a' }])],
  [
    'a digest of several files',
    TypeError,
    'there is no option sha256;',
    (c) => c.upload('v/d/', [{ name: 'a', body: 'x' }], { sha256: '0'.repeat(64) }),
  ],
  ['a range without a start', TypeError, 'range.start', (c) => c.get('v/a', { range: { end: 5 } })],
  ['a range that begins before the file', RangeError, 'start', (c) => c.get('v/a', { range: { start: -5 } })],
  ['a directory to list that is a number', TypeError, 'directory', (c) => c.list(5)],
  ['a lock that is none', TypeError, 'resource', (c) => c.lock(undefined)],
  ['a page of nothing', RangeError, 'limit', (c) => c.audit({ limit: 0 })],
  ['a filter that is misspelt', TypeError, 'there is no option path_prefix;', (c) => c.audit({ path_prefix: 'a' })],
  ['an age that is negative', RangeError, 'olderThanMs', (c) => c.locks({ olderThanMs: -1 })],
  ['a place in the stream that is negative', RangeError, 'afterSeq', (c) => c.watch({ resource: 'v/a' }, { afterSeq: -1 })],
  ['nothing to watch', TypeError, 'target', (c) => c.watch()],
  ['a name to watch in place of a target', TypeError, 'target', (c) => c.watch('v/a')],
  ['no operation', TypeError, 'key', (c) => c.operation({})],
  ['two keys of an operation', TypeError, 'key', (c) => c.operation({ requestId: 'a', operationId: 'b' })],
  ['a break without a reason', TypeError, 'reason', (c) => c.breakLock('v/a', {})],
  ['a grace that is negative', RangeError, 'graceMs', (c) => c.breakLock('v/a', { reason: 'x', graceMs: -1 })],
  ['an unattended wait that is negative', RangeError, 'waitMs', (c) => c.unattended.acquire('v/a', { waitMs: -1 })],
  ['a lease id that is missing', TypeError, 'leaseId', (c) => c.unattended.renew(undefined)],
  ['a lease id that is empty', TypeError, 'leaseId', (c) => c.unattended.release('')],
  ['a finding that is missing', TypeError, 'findingId', (c) => c.administration.fix()],
  ['a dry run in words', TypeError, 'dryRun', (c) => c.administration.fix('f', { dryRun: 'no' })],
  ['a rebase without a reason', TypeError, 'reason', (c) => c.administration.rebase({})],
  ['an adoption without a volume', TypeError, 'volume', (c) => c.administration.adopt('', { reason: 'x' })],
  ['a URL of another kind', TypeError, 'url', () => new FencegateClient({ url: 'ftp://host' })],
  ['a URL with a password', TypeError, 'url', () => new FencegateClient({ url: 'http://me:secret@host' })],
  ['a token with a line break', TypeError, 'authToken', () => new FencegateClient({ authToken: 'secret\n' })],
  ['a session without a time', RangeError, 'sessionTtlMs', () => new FencegateClient({ sessionTtlMs: Number.NaN })],
  ['an option of the client that is misspelt', TypeError, 'there is no option token;', () => new FencegateClient({ token: 'x' } as object)],
];

async function thrownBy(call: () => unknown): Promise<unknown> {
  try {
    await call();
    return 'nothing was thrown';
  } catch (thrown) {
    return thrown;
  }
}

describe('a call that cannot be meant', () => {
  it.each(CALLS)('%s is refused with a %o that names %s, and nothing is sent', async (_what, Kind, begins, call) => {
    const { client, wire } = clientLab();
    const thrown = await thrownBy(() => call(client));
    expect(thrown).toBeInstanceOf(Kind);
    expect(isInvalidArgument(thrown)).toBe(true);
    expect(String((thrown as Error).message).startsWith(begins)).toBe(true);
    expect(String(thrown)).not.toContain('secret');
    expect(wire.seen).toEqual([]);
  });

  it('rejects, and does not throw, where a promise is promised', async () => {
    const { client }: { client: Untyped } = clientLab();
    for (const method of [
      'lease',
      'withLease',
      'put',
      'append',
      'writeRange',
      'delete',
      'move',
      'copy',
      'upload',
      'makeDirectory',
      'get',
      'lock',
      'operation',
    ]) {
      expect(
        await client[method](null).then(
          () => 'done',
          () => 'rejected',
        ),
      ).toBe('rejected');
    }
    await expect(client.lock('no-slash')).rejects.toMatchObject({ code: 'invalid_path' });
  });

  it('is refused by a lease, too', async () => {
    const lab: ClientLab = clientLab();
    const lease: Untyped = await held(lab);
    const before = lab.wire.seen.length;
    for (const call of [
      () => lease.put('v/a', 5),
      () => lease.append('v/a', 'x', { offset: 1.5 }),
      () => lease.writeRange('v/a', '0', 'x'),
      () => lease.delete(undefined),
      () => lease.move('v/a', 'v/b', { otherLease: {} }),
      () => lease.copy('v/a', 'v/b', { overwrit: true }),
      () => lease.upload('v/', [null]),
      () => lease.convert('sharde'),
      () => lease.convert('exclusive', { waitMs: Number.NaN }),
      () => lease.run('work'),
    ]) {
      expect([String(call), isInvalidArgument(await thrownBy(call))]).toEqual([String(call), true]);
    }
    expect(lab.wire.seen.length).toBe(before);
  });

  it('an option that is undefined is one that is absent', async () => {
    const lab = clientLab();
    const lease = await held(lab, { waitMs: undefined, signal: undefined, metadata: undefined });
    expect(lease.state).toBe('held');
  });

  it('a body that yields numbers is no body', async () => {
    const thrown = await thrownBy(async () => {
      const { bodySource } = await import('../../../src/client/body-source.ts');
      const numbers: Untyped = [1, 2];
      for await (const _chunk of (await bodySource(numbers)).open());
    });
    expect(isInvalidArgument(thrown)).toBe(true);
  });
});
