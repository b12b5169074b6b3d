import { describe, expect, it } from 'vitest';
import { watchLock } from '../../../src/grpc/watch-lock.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, LockLab, resource } from '../../support/lock-lab.ts';

const A = resource('a');

async function watched(cancelled: () => boolean) {
  const lab = new LockLab();
  const stop = new AbortController();
  const sent: { readonly type: string }[] = [];
  const call = { signal: stop.signal, requestId: 'r', resource: () => A, caller: () => anybody };
  const wire = {
    request: { resource_path: 'vol/a', from_seq: '0' },
    sendMetadata: () => undefined,
    write: (message: { readonly type: string }) => sent.push(message) > 0,
    get cancelled() {
      return cancelled();
    },
  };
  const over = watchLock({ events: lab.locks.events } as never, call as never, wire as never);
  await settle();
  for (const _ of [1, 2]) await lab.acquire(A, { mode: 'shared' });
  await settle();
  return { lab, over, stop, types: () => sent.map(({ type }) => type) };
}

describe('WatchLock, when the gateway stops', () => {
  it('tells everything that happened before, and then ends', async () => {
    const { lab, over, stop, types } = await watched(() => false);
    await lab.locks.endAll('lost', null);
    stop.abort(new Error('draining'));
    await expect(over).rejects.toThrow('draining');
    expect(types()).toEqual(['GRANTED', 'GRANTED', 'LOST', 'LOST']);
  });

  it('writes nothing more to a client that is gone', async () => {
    const { lab, over, stop, types } = await watched(() => stop.signal.aborted);
    await lab.locks.endAll('lost', null);
    const before = types();
    stop.abort(new Error('cancelled'));
    await expect(over).rejects.toThrow('cancelled');
    expect(types()).toEqual(before);
  });
});
