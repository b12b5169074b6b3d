import { describe, expect, it } from 'vitest';
import { SystemClientClock } from '../../../src/client/clock.ts';

describe('the clock of the client', () => {
  it('counts the sleep of the machine, and no rounding of its uptime', () => {
    const times = { uptimeS: 1_000, runningMs: 5_000 };
    const pass = (runningMs: number, sleptMs = 0): void => {
      times.runningMs += runningMs;
      times.uptimeS += (runningMs + sleptMs) / 1_000;
    };
    const clock = new SystemClientClock({ runningMs: () => times.runningMs, uptimeS: () => times.uptimeS });
    const startMs = clock.monotonicMs();
    pass(700, 900);
    expect(clock.monotonicMs() - startMs).toBe(700);
    pass(0, 60_000);
    expect(clock.monotonicMs() - startMs).toBeCloseTo(700 + 60_900, 3);
    // The uptime of some systems is set with the time of day; what was counted stays.
    times.uptimeS -= 500;
    expect(clock.monotonicMs() - startMs).toBeCloseTo(700 + 60_900, 3);
  });

  it('calls once, not too early, and not when it was told not to', async () => {
    const clock = new SystemClientClock();
    const startMs = clock.monotonicMs();
    clock.after(1, () => expect.unreachable()).cancel();
    await new Promise<void>((resolve) => clock.after(30, resolve, true));
    expect(clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(30);
  });
});
