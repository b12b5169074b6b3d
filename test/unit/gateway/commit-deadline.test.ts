import { expect, it } from 'vitest';
import { commitDeadlineMs } from '../../../src/domain/commit-deadline.ts';
import { LIMITS } from '../../../src/domain/limits.ts';

it('the deadline of a commit grows with its files, up to the largest upload that is allowed', () => {
  expect([0, 1, 2].map(commitDeadlineMs)).toEqual([10_000, 10_000, 10_020]);
  expect(commitDeadlineMs(LIMITS.multipartFilesMax)).toBe(29_980);
  expect(commitDeadlineMs(LIMITS.multipartFilesMax * 10)).toBe(29_980);
});
