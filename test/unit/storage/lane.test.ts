import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import { LaneError } from '../../../src/storage/errno.ts';
import { Lane } from '../../../src/storage/lane.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

function gate<T = void>(): { promise: Promise<T>; open(value: T): void; fail(error: unknown): void } {
  let open: (value: T) => void = () => undefined;
  let fail: (error: unknown) => void = () => undefined;
  const promise = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { promise, open: (value) => open(value), fail: (error) => fail(error) };
}

function laneOf(options: { inFlightMax?: number; queueMax?: number } = {}): { lane: Lane; clock: FakeClock } {
  const clock = new FakeClock();
  return {
    clock,
    lane: new Lane({ volume: 'vol', inFlightMax: options.inFlightMax ?? 2, queueMax: options.queueMax ?? 2, deadlineMs: 4_000, clock }),
  };
}

describe('the lane of a volume', () => {
  it('runs no more calls at once than its limit, and the waiting ones in order', async () => {
    const { lane } = laneOf();
    const gates = [gate(), gate(), gate(), gate()];
    const started: number[] = [];
    const calls = gates.map((g, index) =>
      lane.run(() => {
        started.push(index);
        return g.promise;
      }),
    );
    expect(started).toEqual([0, 1]);
    expect([lane.inFlight, lane.queued]).toEqual([2, 2]);
    gates[1]?.open();
    await settle();
    expect(started).toEqual([0, 1, 2]);
    gates[0]?.open();
    gates[2]?.open();
    await settle();
    gates[3]?.open();
    await Promise.all(calls);
    expect([lane.inFlight, lane.queued]).toEqual([0, 0]);
  });

  it('refuses at once when its queue is full, and says when to come back', async () => {
    const { lane } = laneOf({ inFlightMax: 1, queueMax: 1 });
    const hold = gate();
    const [first, second] = [lane.run(() => hold.promise), lane.run(() => hold.promise)];
    const refused = await lane.run(() => hold.promise).catch((thrown: unknown) => thrown);
    expect(refused).toBeInstanceOf(LaneError);
    expect(refused).toMatchObject({ code: 'volume_unavailable', started: false });
    expect((refused as LaneError).retryAfterMs).toBeGreaterThan(0);
    hold.open();
    await Promise.all([first, second]);
  });

  it('passes a result and an error through', async () => {
    const { lane } = laneOf();
    await expect(lane.run(() => Promise.resolve(7))).resolves.toBe(7);
    await expect(lane.run(() => Promise.reject(new Error('x')))).rejects.toThrow('x');
    expect(lane.breaker).toBe('closed');
  });

  it('B25: a call over its deadline is given up as started, opens the breaker, and its late result is handed over to be dropped', async () => {
    const { lane, clock } = laneOf();
    const hung = gate<string>();
    const late: string[] = [];
    const answer = lane.run(() => hung.promise, { late: (value) => late.push(value) }).catch((thrown: unknown) => thrown);
    clock.advance(4_000);
    const error = (await answer) as LaneError;
    expect(error).toMatchObject({ code: 'volume_unavailable', started: true });
    expect(lane.breaker).toBe('open');
    expect(lane.inFlight).toBe(1);
    hung.open('descriptor');
    await error.ended;
    expect(late).toEqual(['descriptor']);
    expect(lane.inFlight).toBe(0);
  });

  it('a late error is dropped, and ended still resolves', async () => {
    const { lane, clock } = laneOf();
    const hung = gate();
    const answer = lane.run(() => hung.promise).catch((thrown: unknown) => thrown);
    clock.advance(4_000);
    const error = (await answer) as LaneError;
    hung.fail(new Error('late'));
    await expect(error.ended).resolves.toBeUndefined();
  });

  it('a call that still waits when the deadline of another passes is refused then and never made', async () => {
    const { lane, clock } = laneOf({ inFlightMax: 1 });
    const hung = gate();
    let made = false;
    const first = lane.run(() => hung.promise).catch((thrown: unknown) => thrown);
    clock.advance(3_000);
    const second = lane
      .run(async () => {
        made = true;
      })
      .catch((thrown: unknown) => thrown);
    clock.advance(1_000);
    expect(await second).toMatchObject({ started: false });
    expect(await first).toMatchObject({ started: true });
    hung.open();
    await settle();
    expect(made).toBe(false);
  });

  it('while open it refuses without touching the volume', async () => {
    const { lane, clock } = laneOf();
    const hung = gate();
    const first = lane.run(() => hung.promise).catch(() => undefined);
    clock.advance(4_000);
    await first;
    let touched = false;
    await expect(
      lane.run(async () => {
        touched = true;
      }),
    ).rejects.toMatchObject({ code: 'volume_unavailable', started: false });
    expect(touched).toBe(false);
  });

  it('F13: after a while one canary goes through, only one, and its success closes the breaker', async () => {
    const { lane, clock } = laneOf();
    const hung = gate();
    void lane.run(() => hung.promise).catch(() => undefined);
    clock.advance(4_000);
    clock.advance(2_000);
    expect(lane.breaker).toBe('half_open');
    const canary = gate();
    const tried = lane.run(() => canary.promise);
    expect(lane.breaker).toBe('open');
    await expect(lane.run(async () => undefined)).rejects.toMatchObject({ started: false });
    canary.open();
    await tried;
    expect(lane.breaker).toBe('closed');
    await expect(lane.run(async () => 1)).resolves.toBe(1);
  });

  it('a canary that hangs costs one thread, not one every time', async () => {
    const { lane, clock } = laneOf();
    const hung = gate();
    void lane.run(() => hung.promise).catch(() => undefined);
    clock.advance(6_000);
    void lane.run(() => hung.promise).catch(() => undefined);
    for (let i = 0; i < 10; i++) {
      clock.advance(6_000);
      await expect(lane.run(() => hung.promise)).rejects.toMatchObject({ started: false });
    }
    expect(lane.inFlight).toBe(2);
    hung.open();
    await settle();
    expect(lane.inFlight).toBe(0);
    expect(lane.breaker).toBe('half_open');
  });

  it('a canary that fails with an answer shows that the volume answers', async () => {
    const { lane, clock } = laneOf();
    void lane.run(() => new Promise(() => undefined)).catch(() => undefined);
    clock.advance(6_000);
    await expect(lane.run(() => Promise.reject(new Error('ENOENT')))).rejects.toThrow('ENOENT');
    expect(lane.breaker).toBe('closed');
  });

  it('a change that hung lets no look tell that the volume is well: only what proves that changes go through closes the breaker', async () => {
    const { lane, clock } = laneOf();
    const hung = gate();
    void lane.run(() => hung.promise, { changes: true }).catch(() => undefined);
    clock.advance(6_000);
    expect(lane.breaker).toBe('half_open');
    let looked = false;
    const look = async (): Promise<void> => {
      looked = true;
    };
    await expect(lane.run(look, { proves: false })).rejects.toMatchObject({ code: 'volume_unavailable', started: false });
    expect(looked).toBe(false);
    await lane.run(() => Promise.resolve(), { changes: true });
    await lane.run(look, { proves: false });
    expect([lane.breaker, looked]).toEqual(['closed', true]);
  });

  it('a look that hung is answered for by any other call', async () => {
    const { lane, clock } = laneOf();
    void lane.run(() => new Promise(() => undefined), { proves: false }).catch(() => undefined);
    clock.advance(6_000);
    await lane.run(() => Promise.resolve(), { proves: false });
    expect(lane.breaker).toBe('closed');
  });

  it('is not quick while a call is late, until the kernel has let go of it, nor while its breaker is not closed', async () => {
    const { lane, clock } = laneOf();
    const [slow, hung] = [gate(), gate()];
    const answered = lane.run(() => slow.promise);
    clock.advance(LIMITS.volumeLateMs - 1);
    expect(lane.isQuick).toBe(true);
    clock.advance(1);
    expect(lane.isQuick).toBe(false);
    slow.open();
    await answered;
    expect(lane.isQuick).toBe(true);
    void lane.run(() => hung.promise).catch(() => undefined);
    clock.advance(4_000);
    hung.open();
    await settle();
    expect([lane.inFlight, lane.isQuick]).toEqual([0, false]);
    await lane.run(() => Promise.resolve());
    expect(lane.isQuick).toBe(true);
  });

  it('tells how long ago the last call began that reached the disk, and counts none that failed', async () => {
    const { lane, clock } = laneOf();
    expect(lane.reachedAgoMs).toBe(Infinity);
    const slow = gate();
    const reaching = lane.run(() => slow.promise, { reachesDisk: true });
    clock.advance(300);
    slow.open();
    await reaching;
    expect(lane.reachedAgoMs).toBe(300);
    await expect(lane.run(() => Promise.reject(new Error('EIO')), { reachesDisk: true })).rejects.toThrow('EIO');
    await lane.run(() => Promise.resolve());
    expect(lane.reachedAgoMs).toBe(300);
  });

  it('another volume is not touched by any of it', async () => {
    const { lane, clock } = laneOf();
    const other = new Lane({ volume: 'other', inFlightMax: 1, queueMax: 1, deadlineMs: 4_000, clock });
    void lane.run(() => new Promise(() => undefined)).catch(() => undefined);
    clock.advance(10_000);
    await expect(other.run(async () => 'served')).resolves.toBe('served');
  });
});
