import { describe, expect, test } from 'vitest';
import { etagOf } from '../../../src/domain/file-facts.ts';
import { type Conditions, preconditionVerdict } from '../../../src/gateway/preconditions.ts';

const there = { ino: 7n, sizeBytes: 3, mtimeNs: 1_767_225_600_500_000_000n };
const tag = etagOf(there);
const noCondition: Conditions = { ifMatch: null, ifNoneMatch: null, ifUnmodifiedSinceS: null };

describe('conditions of a write', () => {
  test.each<[string, typeof there | null, Partial<Conditions>, boolean]>([
    ['no condition passes', there, {}, true],
    ['If-Match with the tag passes', there, { ifMatch: ['"x"', tag] }, true],
    ['If-Match with another tag fails', there, { ifMatch: ['"b"'] }, false],
    ['If-Match * on nothing fails', null, { ifMatch: '*' }, false],
    ['If-Match * on a file passes', there, { ifMatch: '*' }, true],
    ['If-Match never matches a weak tag', there, { ifMatch: [`W/${tag}`] }, false],
    ['If-None-Match * on nothing passes', null, { ifNoneMatch: '*' }, true],
    ['If-None-Match * on a file fails', there, { ifNoneMatch: '*' }, false],
    ['If-None-Match compares weakly', there, { ifNoneMatch: [`W/${tag}`] }, false],
    ['If-None-Match with another tag passes', there, { ifNoneMatch: ['"b"'] }, true],
    ['If-Unmodified-Since of the same second passes', there, { ifUnmodifiedSinceS: 1_767_225_600 }, true],
    ['If-Unmodified-Since of an earlier second fails', there, { ifUnmodifiedSinceS: 1_767_225_599 }, false],
    ['If-Unmodified-Since on nothing fails', null, { ifUnmodifiedSinceS: 1_767_225_600 }, false],
    ['If-Unmodified-Since does not count beside If-Match', there, { ifMatch: '*', ifUnmodifiedSinceS: 0 }, true],
  ])('%s', (_name, target, conditions, passes) => {
    expect(preconditionVerdict(target, { ...noCondition, ...conditions })?.code ?? null).toBe(passes ? null : 'precondition_failed');
  });
});
