import { describe, expect, test } from 'vitest';
import { preconditionVerdict } from '../../../src/gateway/preconditions.ts';

describe('conditions of a write', () => {
  test.each<[string, string | null, '*' | string[] | null, '*' | string[] | null, boolean]>([
    ['no condition passes', '"a"', null, null, true],
    ['If-Match with the tag passes', '"a"', ['"x"', '"a"'], null, true],
    ['If-Match with another tag fails', '"a"', ['"b"'], null, false],
    ['If-Match * on nothing fails', null, '*', null, false],
    ['If-Match * on a file passes', '"a"', '*', null, true],
    ['If-Match never matches a weak tag', '"a"', ['W/"a"'], null, false],
    ['If-None-Match * on nothing passes', null, null, '*', true],
    ['If-None-Match * on a file fails', '"a"', null, '*', false],
    ['If-None-Match compares weakly', '"a"', null, ['W/"a"'], false],
    ['If-None-Match with another tag passes', '"a"', null, ['"b"'], true],
  ])('%s', (_name, current, ifMatch, ifNoneMatch, passes) => {
    expect(preconditionVerdict(current, ifMatch, ifNoneMatch)?.code ?? null).toBe(passes ? null : 'precondition_failed');
  });
});
