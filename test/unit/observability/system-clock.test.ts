import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { linuxTime, SystemClock, type TimeSources } from '../../../src/observability/system-clock.ts';

/** A machine whose time moves when told; `suspend` is a sleep of the machine. Node's timers follow running time only, as they really do. */
class Machine implements TimeSources {
  running = 5_000;
  suspended = 0;
  readings = 0;
  /** Of before the process. */
  slept = 123_456;

  runningMs = () => this.running;
  readonly bootId = 'boot';
  uptimeMs = () => {
    this.readings += 1;
    return Math.floor((this.running + this.suspended + this.slept) / 10) * 10;
  };
  wallMs = () => 1_700_000_000_000 + this.running + this.suspended;

  run(ms: number): void {
    for (let left = ms; left > 0; left -= 1) {
      this.running += 1;
      vi.advanceTimersByTime(1);
    }
  }

  suspend(ms: number): void {
    this.suspended += ms;
  }
}

let machine: Machine;
let clock: SystemClock;

beforeEach(() => {
  vi.useFakeTimers();
  machine = new Machine();
  clock = new SystemClock(machine);
});

afterEach(() => {
  clock.stop();
  // In this order: what was spied on belongs to the timers that are taken away.
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe('monotonic time', () => {
  it('follows running time, and the rounding of /proc/uptime does not show', () => {
    const start = clock.monotonicMs();
    for (let step = 1; step <= 200; step += 1) {
      machine.run(7);
      expect(clock.monotonicMs() - start).toBe(step * 7);
    }
  });

  it('counts suspend', () => {
    const start = clock.monotonicMs();
    machine.suspend(60_000);
    machine.run(5);
    const passed = clock.monotonicMs() - start;
    expect(passed).toBeGreaterThanOrEqual(60_000 - 10);
    expect(passed).toBeLessThanOrEqual(60_005 + 10);
  });

  it('never goes back, over many sleeps', () => {
    let last = clock.monotonicMs();
    for (let round = 0; round < 50; round += 1) {
      machine.suspend(round % 3 === 0 ? 777 : 0);
      machine.run(3);
      const now = clock.monotonicMs();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
  });

  it('is told to other processes of the boot without the rounding of /proc/uptime, while the machine has not slept', () => {
    machine.slept = 0;
    for (let step = 1; step <= 20; step += 1) {
      machine.run(7);
      const process = new SystemClock(machine);
      expect(process.machine()).toEqual({ bootId: 'boot', uptimeMs: machine.running });
      process.stop();
    }
    machine.slept = 60_000;
    const woken = new SystemClock(machine);
    expect(Math.abs(woken.machine().uptimeMs - machine.running - 60_000)).toBeLessThanOrEqual(10);
    woken.stop();
  });

  it('does not depend on the wall clock', () => {
    const start = clock.monotonicMs();
    vi.spyOn(machine, 'wallMs').mockReturnValue(0);
    expect(clock.monotonicMs()).toBe(start);
    expect(clock.wallMs()).toBe(0);
  });

  it('reads /proc/uptime at most once in a few milliseconds', () => {
    machine.run(10);
    const before = machine.readings;
    for (let call = 0; call < 1_000; call += 1) clock.monotonicMs();
    expect(machine.readings - before).toBeLessThanOrEqual(1);
  });
});

describe('a timer', () => {
  it('runs once, not before its time', () => {
    const run = vi.fn();
    clock.after(100, run);
    machine.run(99);
    expect(run).not.toHaveBeenCalled();
    machine.run(500);
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('that Node runs too early waits on', () => {
    const run = vi.fn();
    clock.after(100, run);
    vi.advanceTimersByTime(100);
    expect(run).not.toHaveBeenCalled();
    machine.run(100);
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('that was cancelled never runs', () => {
    const run = vi.fn();
    clock.after(100, run).cancel();
    machine.run(200);
    expect(run).not.toHaveBeenCalled();
  });

  it('does not come late by the length of a sleep', () => {
    const run = vi.fn();
    clock.after(60_000, run);
    machine.suspend(120_000);
    machine.run(1_010);
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('longer than Node can count waits in pieces that Node can', () => {
    const timeouts = vi.spyOn(globalThis, 'setTimeout');
    clock.after(2 ** 32, () => undefined);
    expect(timeouts).toHaveBeenLastCalledWith(expect.any(Function), 2 ** 31 - 1);
  });
});

describe('the time of Linux', () => {
  it('is read from the kernel: running time and uptime advance', () => {
    vi.useRealTimers();
    const time = linuxTime();
    expect(time.uptimeMs()).toBeGreaterThan(0);
    expect(time.bootId).toMatch(/^[0-9a-f-]{36}$/);
    expect(time.runningMs()).toBeGreaterThan(0);
    expect(Math.abs(time.wallMs() - Date.now())).toBeLessThan(1_000);
    time.close();
  });
});
