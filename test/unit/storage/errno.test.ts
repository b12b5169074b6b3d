import { existsSync, openSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { GatewayError, refuse } from '../../../src/domain/errors.ts';
import { classify, errnoOf, gatewayErrorOf, LaneError, mapped } from '../../../src/storage/errno.ts';
import { EIO, ESTALE, systemError } from '../../support/fault-calls.ts';

function realError(): unknown {
  try {
    openSync('/nonexistent/file', 'r');
  } catch (thrown) {
    return thrown;
  }
  return existsSync('/');
}

describe('errnoOf', () => {
  it('names what Node names', () => {
    expect(errnoOf(realError())).toBe('ENOENT');
  });

  it('names ESTALE although Node has no name for it (trap X1)', () => {
    expect(ESTALE().code).toBe('Unknown system error -116');
    expect(errnoOf(ESTALE())).toBe('ESTALE');
  });

  it('names what a server reports and libuv has no name for, and any other number too', () => {
    const unnamed = (number: number): Error => Object.assign(new Error('x'), { errno: -number, code: `Unknown system error -${number}` });
    expect(errnoOf(unnamed(121))).toBe('EREMOTEIO');
    expect(gatewayErrorOf(unnamed(121)).code).toBe('volume_unavailable');
    expect(errnoOf(unnamed(523))).toBe('E#523');
    expect(gatewayErrorOf(unnamed(523)).code).toBe('volume_unavailable');
    expect(classify(unnamed(523), true)).toBe('unknown');
  });

  it('names an error by its number alone', () => {
    expect(errnoOf(Object.assign(new Error('x'), { errno: -28 }))).toBe('ENOSPC');
  });

  it('names an error by its code alone', () => {
    expect(errnoOf(Object.assign(new Error('x'), { code: 'EIO' }))).toBe('EIO');
  });

  it('has no name for what is no system error', () => {
    expect(errnoOf(new Error('x'))).toBeNull();
    expect(errnoOf(Object.assign(new Error('x'), { code: 'ERR_INVALID_ARG_TYPE' }))).toBeNull();
    expect(errnoOf('ENOENT')).toBeNull();
  });
});

describe('classify', () => {
  const definite = [
    ['ENOSPC', 28],
    ['EDQUOT', 122],
    ['EACCES', 13],
    ['EROFS', 30],
    ['EISDIR', 21],
    ['ENOTDIR', 20],
    ['EXDEV', 18],
    ['ENAMETOOLONG', 36],
    ['EEXIST', 17],
    ['ENOTEMPTY', 39],
  ] as const;

  it.each(definite)('%s on a local volume proves that nothing changed', (name, number) => {
    expect(classify(systemError(name, number), true)).toBe('definite');
  });

  it.each(definite)('F2: %s on a network mount is the server’s answer, and proves nothing without a look', (name, number) => {
    expect(classify(systemError(name, number), false)).toBe('answered');
  });

  it.each([
    ['EIO', 5],
    ['ETIMEDOUT', 110],
    ['EREMOTEIO', 121],
  ] as const)('%s proves nothing anywhere', (name, number) => {
    expect(classify(systemError(name, number), true)).toBe('unknown');
    expect(classify(systemError(name, number), false)).toBe('unknown');
  });

  it.each([true, false])('ENOENT and ESTALE may mean fenced (local: %s)', (local) => {
    expect(classify(systemError('ENOENT', 2), local)).toBe('fenced_candidate');
    expect(classify(ESTALE(), local)).toBe('fenced_candidate');
  });

  it('a call that was never made changed nothing, one that hangs may yet', () => {
    expect(classify(new LaneError('x', 1, null), false)).toBe('definite');
    expect(classify(new LaneError('x', 1, Promise.resolve()), true)).toBe('unknown');
  });

  it('a refusal of ours is definite unless it says otherwise, and a bug proves nothing', () => {
    expect(classify(refuse('already_exists', 'x'), false)).toBe('definite');
    expect(classify(refuse('outcome_unknown', 'x'), true)).toBe('unknown');
    expect(classify(new TypeError('x'), true)).toBe('unknown');
  });
});

describe('gatewayErrorOf', () => {
  it.each([
    ['ENOSPC', 28, 'insufficient_storage'],
    ['EDQUOT', 122, 'insufficient_storage'],
    ['EROFS', 30, 'volume_read_only'],
    ['EACCES', 13, 'forbidden'],
    ['EISDIR', 21, 'is_a_directory'],
    ['ENOTDIR', 20, 'not_a_directory'],
    ['EXDEV', 18, 'cross_volume'],
    ['ELOOP', 40, 'symbolic_link'],
    ['ENXIO', 6, 'special_file'],
    ['ENAMETOOLONG', 36, 'invalid_path'],
    ['EEXIST', 17, 'already_exists'],
    ['ENOTEMPTY', 39, 'directory_not_empty'],
    ['ENOENT', 2, 'not_found'],
  ] as const)('%s (%i) leaves as %s', (name, number, code) => {
    expect(gatewayErrorOf(systemError(name, number)).code).toBe(code);
  });

  it.each([EIO, ESTALE, () => systemError('EMFILE', 24)])(
    'B6: an error that says nothing about the file is volume_unavailable with a time to come back',
    (error) => {
      const answer = gatewayErrorOf(error());
      expect(answer.code).toBe('volume_unavailable');
      expect(answer.retryAfterMs).toBeGreaterThan(0);
    },
  );

  it('says no path of the machine', () => {
    expect(gatewayErrorOf(realError()).message).not.toContain('/nonexistent');
  });

  it('keeps one that already is, and calls a bug internal', async () => {
    const own = refuse('name_alias', 'x');
    expect(gatewayErrorOf(own)).toBe(own);
    expect(gatewayErrorOf(new TypeError('x')).code).toBe('internal');
    await expect(mapped(() => Promise.reject(new TypeError('x')))).rejects.toBeInstanceOf(GatewayError);
  });
});
