import { describe, expect, it, vi } from 'vitest';

/** What the system counts: the uptime goes on while the machine sleeps, the running time does not. */
const times = vi.hoisted(() => ({ uptimeS: 1_000, runningMs: 5_000 }));
vi.mock('node:os', async (original) => ({ ...(await original<typeof import('node:os')>()), uptime: () => times.uptimeS }));

const { SystemClientClock } = await import('../../../src/client/clock.ts');

function pass(runningMs: number, sleptMs = 0): void {
  times.runningMs += runningMs;
  times.uptimeS += (runningMs + sleptMs) / 1_000;
}

describe('the clock of the client', () => {
  it('counts the sleep of the machine, and no rounding of its uptime', () => {
    vi.spyOn(performance, 'now').mockImplementation(() => times.runningMs);
    const clock = new SystemClientClock();
    const startMs = clock.monotonicMs();
    pass(700, 900);
    expect(clock.monotonicMs() - startMs).toBe(700);
    pass(0, 60_000);
    expect(clock.monotonicMs() - startMs).toBeCloseTo(700 + 60_900, 3);
    // The uptime of some systems is set with the time of day; what was counted stays.
    times.uptimeS -= 500;
    expect(clock.monotonicMs() - startMs).toBeCloseTo(700 + 60_900, 3);
    vi.restoreAllMocks();
  });

  it('calls once, not too early, and not when it was told not to', async () => {
    const clock = new SystemClientClock();
    const startMs = clock.monotonicMs();
    clock.after(1, () => expect.unreachable()).cancel();
    await new Promise<void>((resolve) => clock.after(30, resolve, true));
    expect(clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(30);
  });
});
