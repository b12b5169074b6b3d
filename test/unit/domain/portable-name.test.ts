import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { assertPortable } from '../../../src/domain/portable-name.ts';

const refusal = (name: string) => expect.objectContaining({ code: 'invalid_path', message: expect.stringContaining(name) });

describe('F23: a portable name', () => {
  it.each([
    [
      'a device',
      ['CON', 'nul', 'Aux.txt', 'COM1', 'lpt9.tar.gz', 'com²', 'CONIN$', 'conout$.log', 'nul .txt', 'prn  '],
      'that of a device on Windows',
    ],
    ['a reserved character', ['a:b', 'what?', '*', '<x', 'x>', 'a|b', 'say "x"'], 'has one of < > : " | ? *'],
    ['a blank at an end', [' a', 'a '], 'begins or ends with a blank'],
    ['a dot at its end', ['a.', '...', 'a..'], 'ends with a dot'],
    ['a leading minus', ['-rf', '-', '--help'], 'begins with "-"'],
    ['a turn of the text', ['exe\u202etxt.pdf', '\u200fa', 'a\u2066b', '\u061c'], 'turns the direction of the text'],
  ])('is not one with %s, and the refusal says which rule it was and what lifts it', (_what, names, words) => {
    for (const name of names) {
      expect(() => assertPortable(name)).toThrow(refusal(words));
      expect(() => assertPortable(name)).toThrow(refusal('"names: any"'));
    }
  });

  it.each([
    'a',
    'CONTRACT',
    'console',
    'com',
    'com10',
    'nul-2',
    'auxiliary.txt',
    '.hidden',
    'a.b',
    'a b',
    'a-b',
    '~',
    '#',
    '50%',
    "it's",
    '$(x)',
    '[x]',
  ])('may be %s', (name) => {
    expect(() => assertPortable(name)).not.toThrow();
  });

  it('may be of any script: every name of the sample volume is', () => {
    const names = readdirSync(new URL('../../../fixtures/volume', import.meta.url), { recursive: true, encoding: 'utf8' }).map((path) =>
      basename(path),
    );
    expect(names.length).toBeGreaterThan(10);
    for (const name of names) expect(() => assertPortable(name)).not.toThrow();
  });
});
