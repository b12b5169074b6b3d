import { beforeEach, describe, expect, it } from 'vitest';
import { AnswersTogether } from '../../../src/zookeeper/answers-together.ts';
import type { FromChild } from '../../../src/zookeeper/child-protocol.ts';

let sent: FromChild[];
let moments: (() => void)[];
let answers: AnswersTogether;
beforeEach(() => {
  sent = [];
  moments = [];
  answers = new AnswersTogether(
    (message) => sent.push(message),
    (flush) => moments.push(flush),
  );
});

const answer = (id: number): FromChild => ({ kind: 'answer', id, result: {} });
const failure = (id: number): FromChild => ({ kind: 'failure', id, failure: 'unknown', detail: 'lost' });

describe('answers of the ensemble on their way to the gateway', () => {
  it('wait for the last one that was asked for, whether it says yes or no, and keep their order', () => {
    for (let n = 0; n < 3; n += 1) answers.asked();
    answers.say(answer(1));
    answers.say(failure(2));
    expect(sent).toEqual([]);
    answers.say(answer(3));
    expect(sent).toEqual([answer(1), failure(2), answer(3)]);
  });

  it('wait for a moment only', () => {
    answers.asked();
    answers.asked();
    answers.say(answer(1));
    expect(moments).toHaveLength(1);
    moments[0]?.();
    expect(sent).toEqual([answer(1)]);
    answers.say(answer(2));
    expect(sent).toHaveLength(2);
  });

  it('go before anything else that is said', () => {
    answers.asked();
    answers.asked();
    answers.say(answer(1));
    answers.say({ kind: 'watch', path: '/a' });
    expect(sent).toEqual([answer(1), { kind: 'watch', path: '/a' }]);
  });

  it.each([{ kind: 'disconnected' }, { kind: 'connected', session: { id: '0x1', password: '', timeoutMs: 1 } }] as const)(
    'wait for none that an old connection was asked for ($kind)',
    (news) => {
      answers.asked();
      answers.say(news);
      answers.asked();
      answers.say(answer(2));
      expect(sent).toEqual([news, answer(2)]);
    },
  );
});
