import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { AUDIT_ACTIONS } from '../../src/domain/audit-record.ts';
import { ERROR_CODES } from '../../src/domain/errors.ts';
import { LIMITS } from '../../src/domain/limits.ts';

/** House rules that no other tool checks. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface Source {
  readonly name: string;
  readonly text: string;
}

function sources(...folders: string[]): Source[] {
  return folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|cjs|mjs|js|md|json|c)$/.test(name) && !name.includes('node_modules'))
      .map((name) => ({ name: join(folder, name), text: readFileSync(join(ROOT, folder, name), 'utf8') })),
  );
}

/** `file:line` of every line that matches. */
function linesWith(pattern: RegExp, files: readonly Source[]): string[] {
  return files.flatMap(({ name, text }) =>
    text.split('\n').flatMap((line, index) => (pattern.test(line) ? [`${name}:${index + 1}: ${line.trim()}`] : [])),
  );
}

const product = sources('src');
const core = sources('src/domain', 'src/gateway', 'src/locks', 'src/doctor');
const tests = sources('test').filter(({ name }) => name !== 'test/unit/tidy.test.ts');
const everything = [...product, ...tests, ...sources('bin', 'docs', 'fixtures')];

describe('the house rules', () => {
  it('a file has one concept: no source file is over 300 lines', () => {
    // What a program made from the schemas is a list, not a concept.
    const written = [...product, ...sources('test/support')].filter(({ text }) => !text.startsWith('// Made from'));
    const long = written.filter(({ text }) => text.split('\n').length > 301);
    expect(long.map(({ name }) => name)).toEqual([]);
  });

  it('nothing is left for later', () => {
    expect(linesWith(/\b(TODO|FIXME|XXX|HACK)\b|not implemented/i, everything)).toEqual([]);
  });

  it('names say what a thing is: no managers, helpers, utilities', () => {
    expect(
      everything.map(({ name }) => basename(name)).filter((name) => /manager|helper|util|misc|common\.ts$/.test(name) && name !== 'common.ts'),
    ).toEqual([]);
    expect(linesWith(/\b(class|interface|function|type) \w*(Manager|Helper|Util)s?\b/, [...product, ...tests])).toEqual([]);
  });

  it('only main.ts ends the process', () => {
    const others = product.filter(({ name }) => name !== 'src/main.ts');
    expect(linesWith(/^(?!\s*(\*|\/\/)).*process\.(exit|abort|reallyExit)\b/, others)).toEqual([]);
  });

  it('only src/config reads the environment', () => {
    expect(
      linesWith(
        /process\.env\b/,
        product.filter(({ name }) => !name.startsWith('src/config/')),
      ),
    ).toEqual([]);
  });

  it('the core takes time and randomness as arguments', () => {
    expect(
      linesWith(/\b(Date\.now|new Date\(\)|performance\.now|Math\.random|setTimeout|setInterval|randomBytes|randomUUID|hrtime)\b/, core),
    ).toEqual([]);
  });

  it('every test runs: none is alone or still to be written; skipped is only what the machine or the mount at hand cannot do', () => {
    const allowed =
      /\.skipIf\((cannotMount !== null|ON_NFS|cannotMount !== null \|\| ON_NFS)\)|\.runIf\((hardLinks|ON_NFS|!local|IS_SMALL( \|\| IS_QUOTA| && !IS_QUOTA)?)\)/;
    const found = linesWith(/\b(it|test|describe)(\.\w+)*\.(only|skip|todo|skipIf|runIf|fails)\b/, tests);
    expect(found.filter((line) => !allowed.test(line))).toEqual([]);
  });

  it('no test waits by the clock', () => {
    expect(linesWith(/\bsleep\(\d{3,}|setTimeout\([^)]*,\s*\d{3,}/, tests)).toEqual([]);
  });

  it('a limit that is named is used', () => {
    const used = product
      .filter(({ name }) => name !== 'src/domain/limits.ts')
      .map(({ text }) => text)
      .join('\n');
    expect(Object.keys(LIMITS).filter((name) => !used.includes(`LIMITS.${name}`))).toEqual([]);
  });

  it('a code or an action of the closed lists can happen', () => {
    const used = product
      .filter(({ name }) => !/src\/domain\/(errors|audit-record)\.ts|src\/http\/(status|schemas\/)/.test(name))
      .map(({ text }) => text)
      .join('\n');
    expect([...ERROR_CODES, ...AUDIT_ACTIONS].filter((word) => !used.includes(`'${word}'`))).toEqual([]);
  });

  it('dependencies are pinned to one version', () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<string, Record<string, string>>;
    const versions = Object.entries({ ...manifest['dependencies'], ...manifest['devDependencies'] });
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });

  it('the list of dependencies in the decisions is complete', () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { dependencies: Record<string, string> };
    const decision = readFileSync(join(ROOT, 'docs/decisions/0001-dependencies.md'), 'utf8');
    expect(Object.entries(manifest.dependencies).filter(([name, version]) => !decision.includes(name) || !decision.includes(version))).toEqual([]);
  });
});
