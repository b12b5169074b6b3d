import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { CliProcess } from '../support/cli-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** What `npm install` makes of the tarball, but for the packages that it depends on: those are the ones of this repository. */
let directory: string;
let installed: string;
let bin: string;

beforeAll(async () => {
  directory = await newDirectory();
  // `dist` is fresh already.
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', directory], { cwd: ROOT });
  const [tarball = ''] = readdirSync(directory).filter((name) => name.endsWith('.tgz'));
  await run('tar', ['-xzf', tarball], { cwd: directory });
  installed = join(directory, 'package');
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  mkdirSync(join(directory, 'bin'));
  bin = join(directory, 'bin/fencegate');
  symlinkSync('../package/bin/fencegate.cjs', bin);
});

afterAll(() => removeDirectory(directory));

const environment = (url = ''): Record<string, string> => ({ PATH: `${join(directory, 'bin')}:${process.env['PATH']}`, FENCEGATE_URL: url });
const fencegate = (...argv: readonly string[]) => spawnSync(bin, argv, { cwd: directory, encoding: 'utf8', env: environment() });

function filesBelow(path: string): string[] {
  return readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) => statSync(join(path, name)).isFile());
}

describe('the tarball', () => {
  it('has every file that the help names', () => {
    const leaves = ['', 'serve', 'exec', 'put', 'doctor'].map((command) => fencegate(...command.split(' ').filter(Boolean), '--help').stdout);
    const named = leaves.flatMap((help) =>
      [...help.matchAll(/(?<![\w/.])(?:docs|examples|proto)\/[\w./-]*\w|\.env\.example/g)].map(([name]) => name),
    );
    expect(new Set(named)).toEqual(new Set(['.env.example', 'docs/command-line.md']));
    expect(named.filter((name) => !existsSync(join(installed, name)))).toEqual([]);
  });

  it('has every file that its own documents link to, but for the programs behind the measurements', () => {
    const documents = ['README.md', ...filesBelow(join(installed, 'docs')).map((name) => `docs/${name}`)].filter((name) => name.endsWith('.md'));
    expect(documents.length).toBeGreaterThan(10);
    const links = documents.flatMap((document) =>
      [...readFileSync(join(installed, document), 'utf8').matchAll(/\]\((?!\w+:|#)([^)#\s]+)/g)].map(([, target = '']) => `${document} -> ${target}`),
    );
    // They measure the sources of a repository, and need it.
    const wanted = links.filter((link) => !link.includes('-> ../bench/'));
    const isThere = (link: string): boolean => {
      const [document = '', target = ''] = link.split(' -> ');
      return existsSync(resolve(installed, dirname(document), target));
    };
    expect(wanted.length).toBeGreaterThan(20);
    expect(wanted.filter((link) => !isThere(link))).toEqual([]);
  });

  it('has no tests, no sources of ours and nothing of the repository', () => {
    expect(readdirSync(installed).sort()).toEqual(
      ['.env.example', 'LICENSE', 'README.md', 'bin', 'dist', 'docs', 'examples', 'fixtures', 'package.json', 'proto'].sort(),
    );
  });
});

describe('the program of the tarball', () => {
  it('says its version, and takes the variables of .env.example', () => {
    const { version } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as { version: string };
    expect(fencegate('--version').stdout).toBe(`${version}\n`);
    const shell = spawnSync('sh', ['-c', 'set -a; . ./package/.env.example; exec fencegate config check'], {
      cwd: directory,
      encoding: 'utf8',
      env: environment(),
    });
    expect([shell.status, shell.stderr]).toEqual([0, '']);
  });

  it('serves, and runs the examples that come with it', async () => {
    const gateway = new CliProcess([bin, 'serve'], { PATH: process.env['PATH'] ?? '', FENCEGATE_PORT: '0' }, directory);
    onTestFinished(async () => {
      gateway.signal('SIGTERM');
      await gateway.ended();
    });
    await gateway.says('"message":"listening"');
    const url = String(gateway.line('"message":"listening"')['url']);
    const script = await run(join(installed, 'examples/close-quarter.sh'), [], { cwd: directory, env: environment(url) });
    expect(script.stdout).toMatch(/closed under token \d+\n$/);
    const sdk = await run(process.execPath, ['examples/sdk.mjs'], { cwd: installed, env: environment(url) });
    expect(sdk.stdout).toContain('alice was refused');
  });
});
