import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import { ResourceMutex } from '../../../src/gateway/resource-mutex.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

const never = new AbortController().signal;

function inside(mutex: ResourceMutex, keys: string[], log: string[], name: string): Promise<() => void> {
  return mutex.enter(keys, never).then((leave) => {
    log.push(name);
    return leave;
  });
}

describe('the mutex of a resource', () => {
  test('lets one section in at a time, first come first served', async () => {
    const mutex = new ResourceMutex(new FakeClock());
    const log: string[] = [];
    const leaveA = await inside(mutex, ['r'], log, 'a');
    const b = inside(mutex, ['r'], log, 'b');
    const c = inside(mutex, ['r'], log, 'c');
    await settle();
    expect(log).toEqual(['a']);
    leaveA();
    (await b)();
    (await c)();
    expect(log).toEqual(['a', 'b', 'c']);
  });

  test('does not hold other resources up', async () => {
    const mutex = new ResourceMutex(new FakeClock());
    await mutex.enter(['r'], never);
    await expect(mutex.enter(['s'], never)).resolves.toBeTypeOf('function');
  });

  test('a wait that is aborted leaves the queue with the reason of the signal, and gives back what it had entered', async () => {
    const mutex = new ResourceMutex(new FakeClock());
    const leave = await mutex.enter(['b'], never);
    const controller = new AbortController();
    const both = mutex.enter(['a', 'b'], controller.signal);
    await settle();
    controller.abort(new Error('gone'));
    await expect(both).rejects.toThrow('gone');
    await expect(mutex.enter(['a'], never)).resolves.toBeTypeOf('function');
    leave();
    await expect(mutex.enter(['b'], never)).resolves.toBeTypeOf('function');
  });

  test('a wait behind a section that does not end is refused after the commit deadline', async () => {
    const clock = new FakeClock();
    const mutex = new ResourceMutex(clock);
    await mutex.enter(['r'], never);
    const waiting = mutex.enter(['r'], never);
    const refused = expect(waiting).rejects.toMatchObject({ code: 'volume_unavailable' });
    await clock.advanceAsync(LIMITS.commitDeadlineMs);
    await refused;
  });

  test('the queue is bounded', async () => {
    const mutex = new ResourceMutex(new FakeClock());
    await mutex.enter(['r'], never);
    for (let i = 0; i < LIMITS.contendersPerResourceMax; i++) void mutex.enter(['r'], never);
    await expect(mutex.enter(['r'], never)).rejects.toMatchObject({ code: 'queue_full' });
  });
});
