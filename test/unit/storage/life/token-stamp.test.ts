import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { refuse } from '../../../../src/domain/errors.ts';
import { FENCING_TOKEN_MAX } from '../../../../src/domain/fencing-token.ts';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { judgeStamp, parseStamp, type Stamp, StampUnreadable, stampBytes } from '../../../../src/storage/life/stamp.ts';
import { TokenStamp } from '../../../../src/storage/life/token-stamp.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';

const BLOCK = LIMITS.tokenBlock;

/** A volume that keeps the stamp written to it; `fail` makes the next writes fail, `hold` makes them hang. */
function stampOver(found: Stamp | null = null) {
  const clock = new FakeClock();
  const state = {
    recorded: [] as bigint[],
    written: [] as Stamp[],
    failures: [] as unknown[],
    full: false,
    fail: false,
    release: null as (() => void) | null,
    hold: false,
  };
  const stamp = new TokenStamp({
    volume: 'vol',
    journalUuid: 'j',
    found,
    clock,
    record: async (ceiling) => {
      if (state.full) throw refuse('journal_unavailable', 'its disk is full');
      state.recorded.push(ceiling);
    },
    write: async (next) => {
      expect(next.reserved && next.ceiling <= (state.recorded.at(-1) ?? 0n)).toBe(true);
      if (state.hold)
        await new Promise<void>((resolve) => {
          state.release = resolve;
        });
      if (state.fail) throw new Error('no space');
      state.written.push(next);
    },
    onFailure: (thrown) => void state.failures.push(thrown),
  });
  return { stamp, clock, state, durable: () => state.written.at(-1)?.ceiling ?? (found?.journal === 'j' ? found.ceiling : 0n) };
}

describe('the token ceiling of a volume', () => {
  it('at the end of all tokens lets none be reserved above it, and nobody waits for one', async () => {
    const { stamp } = stampOver({ journal: 'j', ceiling: FENCING_TOKEN_MAX, last: 1n, reserved: true });
    await stamp.reserve(FENCING_TOKEN_MAX);
    await expect(stamp.reserve(stamp.ceiling + 1n)).rejects.toMatchObject({ code: 'volume_unavailable' });
  });

  it('I6: is durable at or above a token before the token is issued, whatever writes fail', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ step: fc.bigInt({ min: 1n, max: BLOCK }), fail: fc.boolean() }), { maxLength: 40, size: 'max' }),
        async (steps) => {
          const { stamp, state, durable } = stampOver();
          let token = 0n;
          for (const { step, fail } of steps) {
            token += step;
            state.fail = fail;
            const issued = await stamp.reserve(token).then(
              () => true,
              () => false,
            );
            if (issued) expect(durable()).toBeGreaterThanOrEqual(token);
            await settle();
          }
          const ceilings = state.written.map(({ ceiling }) => ceiling);
          expect(ceilings).toEqual([...ceilings].sort((a, b) => (a < b ? -1 : 1)));
        },
      ),
    );
  });

  it('is written no more once the volume is started anew: its directory is gone by then', async () => {
    const { stamp, clock, state } = stampOver();
    await stamp.reserve(1n);
    stamp.noteIssued(1n);
    stamp.abandon();
    await clock.advanceAsync(10 * LIMITS.stampRefreshMs);
    await stamp.stop();
    expect([state.written.length, state.failures]).toEqual([1, []]);
    await expect(stamp.reserve(2n)).rejects.toMatchObject({ code: 'volume_unavailable' });
  });

  it('goes in blocks: one write for many tokens, and the next block is written in advance from half of it', async () => {
    const { stamp, state } = stampOver();
    for (let token = 1n; token <= 100n; token += 1n) await stamp.reserve(token);
    expect(state.written).toEqual([{ journal: 'j', ceiling: 1n + BLOCK, last: 0n, reserved: true }]);
    await stamp.reserve(BLOCK / 2n + 2n);
    await settle();
    expect(state.written).toHaveLength(2);
    expect(stamp.covers(BLOCK + 2n)).toBe(true);
  });

  it('goes on above a ceiling that was found, and never writes a lower one', async () => {
    const { stamp, state } = stampOver({ journal: 'other', ceiling: 5n * BLOCK, last: 7n, reserved: true });
    expect(stamp.covers(1n)).toBe(false);
    await stamp.reserve(3n);
    expect(state.written).toEqual([{ journal: 'j', ceiling: 5n * BLOCK, last: 7n, reserved: true }]);
  });

  it('keeps only its own callers waiting when the volume hangs', async () => {
    const [hung, well] = [stampOver(), stampOver()];
    hung.state.hold = true;
    let told = false;
    void hung.stamp.reserve(1n).then(() => {
      told = true;
    });
    await well.stamp.reserve(1n);
    await settle();
    expect(told).toBe(false);
    hung.state.release?.();
    await settle();
    expect(told).toBe(true);
  });

  it('refuses with volume_unavailable when it cannot be written, and recovers by itself', async () => {
    const { stamp, state } = stampOver();
    state.fail = true;
    await expect(stamp.reserve(1n)).rejects.toMatchObject({ code: 'volume_unavailable' });
    state.fail = false;
    await stamp.reserve(1n);
    expect(stamp.covers(1n)).toBe(true);
  });

  it('is in the journal before it is in the stamp, once a ceiling; a journal that refuses it leaves the stamp as it is, and its own words to the caller', async () => {
    const { stamp, state } = stampOver();
    await stamp.reserve(1n);
    stamp.noteIssued(1n);
    await stamp.stop();
    expect([state.recorded, state.written.map(({ ceiling }) => ceiling)]).toEqual([[1n + BLOCK], [1n + BLOCK, 1n + BLOCK]]);
    state.full = true;
    await expect(stamp.reserve(2n + BLOCK)).rejects.toMatchObject({ code: 'journal_unavailable' });
    await stamp.reserve(1n + BLOCK);
    expect(state.written).toHaveLength(2);
    state.full = false;
    await stamp.reserve(2n + BLOCK);
    expect([state.recorded.at(-1), state.written.at(-1)?.ceiling]).toEqual([2n + 2n * BLOCK, 2n + 2n * BLOCK]);
  });

  it('covers the very last token there is', async () => {
    const last = 2n ** 63n - 1n;
    const { stamp, durable } = stampOver();
    await stamp.reserve(last);
    expect(durable()).toBe(last);
  });

  it('refuses everything until a rebase, which writes a ceiling above the base under our name', async () => {
    const { stamp, durable, state } = stampOver({ journal: 'other', ceiling: 10n, last: 9n, reserved: true });
    stamp.block('a rebase is needed');
    await expect(stamp.reserve(11n)).rejects.toMatchObject({ code: 'volume_unavailable' });
    await stamp.rebase(50n);
    await stamp.reserve(51n);
    expect(durable()).toBeGreaterThanOrEqual(51n);
    expect(state.written.at(-1)).toMatchObject({ journal: 'j', last: 50n });
  });
});

describe('the last token in the stamp', () => {
  it('is refreshed once a second, and only when it changed', async () => {
    const { stamp, clock, state } = stampOver();
    await stamp.reserve(1n);
    stamp.noteIssued(1n);
    stamp.noteIssued(2n);
    expect(state.written).toHaveLength(1);
    await clock.advanceAsync(LIMITS.stampRefreshMs);
    expect(state.written.at(-1)).toEqual({ journal: 'j', ceiling: 1n + BLOCK, last: 2n, reserved: true });
    await clock.advanceAsync(10 * LIMITS.stampRefreshMs);
    expect(state.written).toHaveLength(2);
  });

  it('is tried again after a failure, which somebody is told of', async () => {
    const { stamp, clock, state } = stampOver();
    await stamp.reserve(1n);
    stamp.noteIssued(1n);
    state.fail = true;
    await clock.advanceAsync(LIMITS.stampRefreshMs);
    expect(state.failures).toHaveLength(1);
    state.fail = false;
    await clock.advanceAsync(LIMITS.stampRefreshMs);
    expect(state.written.at(-1)?.last).toBe(1n);
  });

  it('is written a last time at the end', async () => {
    const { stamp, state } = stampOver();
    await stamp.reserve(9n);
    stamp.noteIssued(9n);
    await stamp.stop();
    expect(state.written.at(-1)?.last).toBe(9n);
  });
});

describe('what a stamp says about the journal', () => {
  const found: Stamp = { journal: 'j', ceiling: 100n, last: 40n, reserved: true };
  it.each([
    [null, 'j', null, null, 'ok'],
    [found, 'j', 40n, 100n, 'ok'],
    [found, 'j', 39n, 100n, 'ahead_of_journal'],
    [found, 'j', null, 100n, 'ahead_of_journal'],
    [{ ...found, last: 0n }, 'j', null, 100n, 'ok'],
    [found, 'k', 1_000n, 1_000n, 'other_journal'],
    // Cut off between the journal and the volume, at whatever ceiling.
    [found, 'j', 40n, 101n, 'ok'],
    [null, 'j', null, 100n, 'ok'],
    [found, 'j', 40n, 99n, 'unreserved_ceiling'],
    [found, 'j', 1_000n, null, 'unreserved_ceiling'],
    // Of an earlier version, which had no ceilings in the journal.
    [{ ...found, reserved: false }, 'j', 40n, null, 'ok'],
    [{ ...found, reserved: false }, 'j', 40n, 99n, 'ok'],
    [{ ...found, reserved: false }, 'j', 39n, null, 'ahead_of_journal'],
  ] as const)('%o against journal %s that knows %s and has reserved %s is %s', (stamp, uuid, knows, reserved, verdict) => {
    expect(judgeStamp(stamp, { uuid, knows, reserved })).toBe(verdict);
  });

  it('and one of an earlier version, which does not say that its ceiling is reserved, is read as that', () => {
    expect(parseStamp(Buffer.from('{"journal":"j","ceiling":"9","last":"1"}'))).toEqual({ journal: 'j', ceiling: 9n, last: 1n, reserved: false });
  });

  it('reads back what it writes, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.uuid(),
        fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
        fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
        fc.boolean(),
        (journal, a, b, reserved) => {
          const stamp = { journal, ceiling: a > b ? a : b, last: a > b ? b : a, reserved };
          expect(parseStamp(stampBytes(stamp))).toEqual(stamp);
        },
      ),
    );
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        expect(() => parseStamp(Buffer.from(text))).toThrow(StampUnreadable);
      }),
    );
    for (const bad of [
      '{"journal":"j","ceiling":"9","last":"10"}',
      '{"journal":"j","ceiling":"09","last":"1"}',
      '{"journal":"j","ceiling":"9223372036854775808","last":"1"}',
      '{"journal":"j","ceiling":9,"last":1}',
    ]) {
      expect(() => parseStamp(Buffer.from(bad))).toThrow(StampUnreadable);
    }
  });
});
