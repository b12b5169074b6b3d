import { beforeEach, describe, expect, it } from 'vitest';
import { AnswersTogether } from '../../../src/zookeeper/answers-together.ts';
import type { FromChild } from '../../../src/zookeeper/child-protocol.ts';

let sent: FromChild[];
let moments: (() => void)[];
let turns: (() => void)[];
let answers: AnswersTogether;
beforeEach(() => {
  sent = [];
  moments = [];
  turns = [];
  answers = new AnswersTogether({
    send: (message) => sent.push(message),
    afterMoment: (flush) => moments.push(flush),
    afterTurn: (end) => turns.push(end),
  });
});

/** Requests that arrive together. */
function asked(...requests: readonly (readonly [id: number, kind: 'read' | 'change'])[]): void {
  for (const [id, kind] of requests) answers.asked(id, kind === 'change');
  for (const end of turns.splice(0)) end();
}

const answer = (id: number): FromChild => ({ kind: 'answer', id, result: {} });
const failure = (id: number): FromChild => ({ kind: 'failure', id, failure: 'unknown', detail: 'lost' });

describe('answers of the ensemble on their way to the gateway', () => {
  it('wait for the last one that was asked for, whether it says yes or no, and keep their order', () => {
    asked([1, 'change'], [2, 'read'], [3, 'change']);
    answers.say(answer(1));
    answers.say(failure(2));
    expect(sent).toEqual([]);
    answers.say(answer(3));
    expect(sent).toEqual([answer(1), failure(2), answer(3)]);
  });

  it('do not wait for what was asked later', () => {
    asked([1, 'change'], [2, 'read']);
    asked([3, 'change']);
    answers.say(answer(1));
    answers.say(answer(2));
    expect(sent).toEqual([answer(1), answer(2)]);
  });

  it('do not wait for a commit when they were asked for before any change', () => {
    asked([1, 'read'], [2, 'change'], [3, 'read']);
    answers.say(answer(1));
    expect(sent).toEqual([answer(1)]);
    answers.say(answer(2));
    expect(sent).toHaveLength(1);
    answers.say(answer(3));
    expect(sent).toHaveLength(3);
  });

  it('wait for a moment only', () => {
    asked([1, 'read'], [2, 'read']);
    answers.say(answer(1));
    expect(moments).toHaveLength(1);
    moments[0]?.();
    expect(sent).toEqual([answer(1)]);
    answers.say(answer(2));
    expect(sent).toHaveLength(2);
  });

  it('go before anything else that is said', () => {
    asked([1, 'read'], [2, 'read']);
    answers.say(answer(1));
    answers.say({ kind: 'watch', path: '/a' });
    expect(sent).toEqual([answer(1), { kind: 'watch', path: '/a' }]);
  });

  it.each([{ kind: 'disconnected' }, { kind: 'connected', session: { id: '0x1', password: '', timeoutMs: 1 }, server: '127.0.0.1:1' }] as const)(
    'wait for none that an old connection was asked for ($kind)',
    (news) => {
      answers.asked(1, false);
      answers.say(news);
      answers.asked(2, false);
      answers.say(answer(2));
      expect(sent).toEqual([news, answer(2)]);
    },
  );
});
