import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const SRC = fileURLToPath(new URL('../../../src', import.meta.url));
const STATIC_IMPORT = /^(?:import|export) (?!type\b)[^;]*?from '([^']+)';/gm;

/** Every module that is loaded, with the packages, before a command says what it needs. */
function loadedAtStart(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(STATIC_IMPORT)) {
    if (name.startsWith('.')) loadedAtStart(join(dirname(file), name), seen);
    else if (!name.startsWith('node:')) seen.add(name);
  }
  return seen;
}

describe('the start of the command line', () => {
  it('loads neither a gateway nor a client nor a command: they come when they are asked for', () => {
    const loaded = [...loadedAtStart(join(SRC, 'main.ts'))].map((name) => (name.startsWith(SRC) ? relative(SRC, name) : name));
    expect(
      loaded.filter((name) => /^(compose|http|journal|locks|gateway|storage|cli\/(commands|child|demo|serve))|fencegate-client/.test(name)),
    ).toEqual([]);
    expect(loaded.filter((name) => !name.endsWith('.ts')).sort()).toEqual(['commander', 'fastest-levenshtein']);
  });
});
