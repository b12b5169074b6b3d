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

  it('of a file that a hung call may still make, it is removed only once that call has ended', async () => {
    const litter = new Litter();
    let end: () => void = () => undefined;
    const hung = new Promise<void>((resolve) => {
      end = resolve;
    });
    const { run, calls } = removal(null);
    litter.removeLate('late', silent(hung), run);
    litter.removeLate('never made', silent(), run);
    await settle();
    expect(calls()).toBe(0);
    end();
    await settle();
    expect(calls()).toBe(1);
  });
});
