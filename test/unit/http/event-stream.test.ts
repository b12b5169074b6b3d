import { expect, test } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { LockEvent } from '../../../src/domain/lock-events.ts';
import { eventStream } from '../../../src/http/event-stream.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

const event = (seq: number, resource: string): LockEvent => ({
  type: 'released',
  seq,
  at: 'now',
  resource,
  leaseRef: 'lr',
  clientId: null,
  mode: 'shared',
  fencingToken: null,
  reason: null,
  cycle: null,
});

test('R19: a comment goes out while nothing happens, and an event that comes meanwhile is not lost', async () => {
  const clock = new FakeClock();
  let happen: (event: LockEvent) => void = () => undefined;
  const events = (async function* () {
    yield await new Promise<LockEvent>((resolve) => {
      happen = resolve;
    });
  })();
  const stream = eventStream(events, () => true, clock);
  expect((await stream.next()).value).toBe(': watching\n\n');
  for (let i = 0; i < 3; i += 1) {
    const next = stream.next();
    await clock.advanceAsync(LIMITS.watchCommentMs);
    expect((await next).value).toBe(': still watching\n\n');
  }
  const next = stream.next();
  await settle();
  happen(event(7, 'demo/a'));
  expect((await next).value).toMatch(/^id: 7\nevent: released\ndata: \{.*\}\n\n$/);
  expect((await stream.next()).done).toBe(true);
});

test('what lies outside the scope is left out', async () => {
  const events = (async function* () {
    yield event(1, 'demo/secret');
    yield event(2, 'demo/open');
  })();
  const texts: string[] = [];
  for await (const text of eventStream(events, (name) => name === 'demo/open', new FakeClock())) texts.push(text);
  expect(texts).toHaveLength(2);
  expect(texts[1]).toContain('id: 2');
});

test('leaving the stream ends the source', async () => {
  let ended = false;
  const events = (async function* () {
    try {
      yield event(1, 'demo/a');
      yield event(2, 'demo/a');
    } finally {
      ended = true;
    }
  })();
  const stream = eventStream(events, () => true, new FakeClock());
  await stream.next();
  await stream.next();
  await stream.return(undefined);
  expect(ended).toBe(true);
});
