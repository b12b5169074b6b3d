import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const FILE = fileURLToPath(new URL('../../../proto/fencegate/v1/lock_service.proto', import.meta.url));
/** A method, a message, a list of values, a field, a value. */
const DECLARES = /^\s*(rpc|message|enum) \w+|^\s*((optional|repeated) )?\w+ \w+ = \d+;|^\s*[A-Z][A-Z_]+ = \d+;/;

it('the shipped .proto file says of everything in it what it means', () => {
  const lines = readFileSync(FILE, 'utf8').split('\n');
  const declared = lines.flatMap((line, index) => (DECLARES.test(line) ? [index] : []));
  expect(declared.length).toBeGreaterThan(100);
  // The list of types stands at the head of its message, whose comment is above.
  const silent = declared.filter((index) => !/^\s*\/\//.test(lines[index - 1] ?? '') && !/^message /.test(lines[index - 1] ?? ''));
  expect(silent.map((index) => lines[index]?.trim())).toEqual([]);
});
