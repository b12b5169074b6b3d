import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { printable } from '../../../src/cli/printable.ts';

describe('what strangers chose, on a terminal', () => {
  it('shows what would move the cursor, colour or turn the text, and leaves the rest', () => {
    expect(printable('a\u001b[2Jb\nc')).toBe(String.raw`a\x1b[2Jb\x0ac`);
    expect(printable('report\u202etxt.exe')).toBe(String.raw`report\u202etxt.exe`);
    expect(printable('Bücher 本 🗄')).toBe('Bücher 本 🗄');
  });

  it('lets no control character through', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => !/\p{Cc}/u.test(printable(text))));
  });
});
