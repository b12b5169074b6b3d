import { describe, expect, it } from 'vitest';
import { LaneError } from '../../../src/storage/errno.ts';
import { Litter } from '../../../src/storage/litter.ts';
import { settle } from '../../support/fake-clock.ts';
import { systemError } from '../../support/fault-calls.ts';

const silent = (hung: Promise<void> | null = null): LaneError => new LaneError('The volume v does not answer.', 1_000, hung);

/** A removal that answers as told, one answer a call. */
function removal(...answers: (Error | null)[]): { run: () => Promise<void>; calls: () => number } {
  let calls = 0;
  return {
    calls: () => calls,
    run: async () => {
      const answer = answers[calls++];
      if (answer instanceof Error) throw answer;
    },
  };
}

describe('what a hung volume keeps from being removed', () => {
  it('is tried again when the volume answers, and then no more', async () => {
    const litter = new Litter();
    const { run, calls } = removal(silent(), silent(), null);
    await litter.remove('a', run);
    for (let sweep = 0; sweep < 4; sweep += 1) {
      litter.sweep();
      await settle();
    }
    expect(calls()).toBe(3);
  });

  it('is not tried again after an answer that is final', async () => {
    const litter = new Litter();
    const gone = removal(systemError('ENOENT', 2));
    const refused = removal(systemError('EROFS', 30));
    await litter.remove('gone', gone.run);
    await litter.remove('refused', refused.run);
    litter.sweep();
    await settle();
    expect([gone.calls(), refused.calls()]).toEqual([1, 1]);
  });

  it('is tried one after the other, so that who writes meanwhile need not wait behind it', async () => {
    const litter = new Litter();
    const begun: string[] = [];
    let end: () => void = () => undefined;
    for (const key of ['a', 'b']) {
      let asked = 0;
      await litter.remove(key, async () => {
        asked += 1;
        if (asked === 1) throw silent();
        begun.push(key);
        await new Promise<void>((resolve) => {
          end = resolve;
        });
      });
    }
    litter.sweep();
    await settle();
    expect(begun).toEqual(['a']);
    end();
    await settle();
    expect(begun).toEqual(['a', 'b']);
  });
});

describe('a name whose making failed', () => {
  const failed = (thrown: Error, isMade: boolean) => async (made: () => void) => {
    if (isMade) made();
    throw thrown;
  };

  it.each([
    ['was made before that', silent(), true],
    ['may have been made by the call that failed', systemError('EIO', 5), false],
  ] as const)('is removed when it %s', async (_when, thrown, isMade) => {
    const { run, calls } = removal(null);
    await expect(new Litter().making('a', run, failed(thrown, isMade))).rejects.toBe(thrown);
    expect(calls()).toBe(1);
  });

  it('is tried again when the volume does not answer its removal either', async () => {
    const litter = new Litter();
    const { run, calls } = removal(silent(), null);
    await expect(litter.making('a', run, failed(silent(), true))).rejects.toThrow(LaneError);
    litter.sweep();
    await settle();
    expect(calls()).toBe(2);
  });

  it('and that a hung call may still make is removed only once that call has ended', async () => {
    const litter = new Litter();
    let end: () => void = () => undefined;
    const hung = new Promise<void>((resolve) => {
      end = resolve;
    });
    const { run, calls } = removal(null);
    await expect(litter.making('late', run, failed(silent(hung), false))).rejects.toThrow(LaneError);
    await settle();
    expect(calls()).toBe(0);
    end();
    await settle();
    expect(calls()).toBe(1);
  });

  it('and that was never made, because the volume does not answer, costs no call', async () => {
    const litter = new Litter();
    const { run, calls } = removal(null);
    await expect(litter.making('a', run, failed(silent(), false))).rejects.toThrow(LaneError);
    litter.sweep();
    await settle();
    expect(calls()).toBe(0);
  });
});
