import { describe, expect, it } from 'vitest';
import { CLIENT_LIMITS } from '../../../src/client/client-limits.ts';
import { STATUS_BY_CODE } from '../../../src/client/contract/codes.ts';
import { FencegateError, type FencegateErrorCode, isFencegateError, RETRY_RULES } from '../../../src/client/index.ts';
import { refusalOf } from '../../../src/client/refusal.ts';
import { retrying } from '../../../src/client/retrying.ts';
import { STATUS_TABLE } from '../../../src/http/status.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const CODES = Object.keys(STATUS_TABLE) as (keyof typeof STATUS_TABLE)[];

/** Fails with `code` for ever; the times at which it was tried. */
async function triesOf(
  code: FencegateErrorCode,
  options: { keyed: boolean; retryAfterMs?: number; untilMs?: number; signal?: AbortSignal },
): Promise<number[]> {
  const clock = new FakeClock();
  const startMs = clock.monotonicMs();
  const tries: number[] = [];
  const attempt = async (): Promise<never> => {
    tries.push(clock.monotonicMs() - startMs);
    throw new FencegateError(code, { detail: code, retryAfterMs: options.retryAfterMs ?? null });
  };
  const { keyed, signal, untilMs } = options;
  const outcome = retrying({ clock, random: () => 0.5 }, attempt, {
    keyed,
    signal,
    ...(untilMs === undefined ? {} : { untilMs: startMs + untilMs }),
  });
  const failed = expect(outcome).rejects.toMatchObject({ code });
  await clock.advanceAsync(600_000);
  await failed;
  return tries;
}

describe('trying again', () => {
  it.each(CODES.filter((code) => RETRY_RULES[code] === undefined))('is not for %s', async (code) => {
    expect(await triesOf(code, { keyed: true, retryAfterMs: 1_000 })).toHaveLength(1);
  });

  it.each(CODES.filter((code) => RETRY_RULES[code] !== undefined))(
    'is for %s, a bounded number of times, not before the gateway asks',
    async (code) => {
      const tries = await triesOf(code, { keyed: true, retryAfterMs: 2_000 });
      expect(tries).toHaveLength(CLIENT_LIMITS.attemptsMax);
      for (const [i, atMs] of tries.slice(1).entries()) expect(atMs - (tries[i] ?? 0)).toBeGreaterThanOrEqual(2_000);
    },
  );

  it('after an outcome that is not known is only for what does nothing twice', async () => {
    for (const code of ['gateway_unreachable', 'outcome_unknown', 'idempotency_in_progress'] as const) {
      expect(await triesOf(code, { keyed: false })).toHaveLength(1);
    }
    expect(await triesOf('overloaded', { keyed: false })).toHaveLength(CLIENT_LIMITS.attemptsMax);
  });

  it('waits longer each time, with jitter, and gives up what is asked to wait for too long', async () => {
    expect(await triesOf('overloaded', { keyed: true })).toEqual([0, 50, 150, 350, 750, 1_550, 3_150, 5_650]);
    expect(await triesOf('overloaded', { keyed: true, retryAfterMs: 3_600_000 })).toHaveLength(1);
  });

  it('may go by time in place of a number', async () => {
    const tries = await triesOf('gateway_unreachable', { keyed: true, untilMs: 20_000 });
    expect(tries.length).toBeGreaterThan(CLIENT_LIMITS.attemptsMax);
    expect(tries.at(-1)).toBeLessThan(20_000);
  });

  it('ends with the reason of the signal', async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    const attempt = (): Promise<never> => Promise.reject(new FencegateError('overloaded', { detail: 'busy' }));
    const outcome = expect(retrying({ clock, random: () => 1 }, attempt, { keyed: true, signal: controller.signal })).rejects.toThrow('enough');
    await clock.advanceAsync(10);
    controller.abort(new Error('enough'));
    await outcome;
  });

  it('is never for what says stop writing', () => {
    for (const code of ['stale_token', 'lease_ended', 'precondition_failed', 'lease_not_held', 'lease_lost', 'internal'] as const) {
      expect(RETRY_RULES[code]).toBeUndefined();
    }
  });
});

describe('an error', () => {
  const answer = (status: number, text: string, headers: Record<string, string> = {}) =>
    refusalOf({ status, text, header: (name) => headers[name] ?? null });

  it('has what the problem document says', () => {
    const text = JSON.stringify({
      type: 'x',
      title: 't',
      status: 412,
      detail: 'too late',
      code: 'stale_token',
      request_id: 'r1',
      presented_token: '4',
    });
    const error = answer(412, text, { 'retry-after': '2' });
    expect(error).toMatchObject({
      message: 'too late',
      code: 'stale_token',
      status: 412,
      requestId: 'r1',
      members: { presented_token: '4' },
      retryAfterMs: 2_000,
    });
    expect(error.members).toEqual({ presented_token: '4' });
    expect(isFencegateError(error)).toBe(true);
    expect(isFencegateError(error, 'lease_ended', 'stale_token')).toBe(true);
    expect(isFencegateError(error, 'lease_ended')).toBe(false);
    expect(isFencegateError(new Error('x'))).toBe(false);
  });

  it('of something that is no gateway says so', () => {
    expect(answer(502, '<html>', { 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' })).toMatchObject({
      code: 'unexpected_answer',
      status: 502,
      retryAfterMs: 0,
    });
    expect(answer(400, '{"code":"of_tomorrow"}')).toMatchObject({ code: 'unexpected_answer', members: { code: 'of_tomorrow' } });
    expect(answer(400, '{"code":"toString"}', { 'retry-after': 'soon' })).toMatchObject({ code: 'unexpected_answer', retryAfterMs: null });
  });

  it('has the statuses of the gateway', () => {
    expect(Object.entries(STATUS_BY_CODE)).toEqual(CODES.map((code) => [code, STATUS_TABLE[code].status]));
  });
});
