import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CliProcess } from '../support/cli-process.ts';
import { BIN } from '../support/command-line.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';

const ROOT = dirname(dirname(BIN));

/** The program as `npm install --omit=optional` leaves it. */
async function installedWithoutOptional(): Promise<string> {
  const directory = await newDirectory();
  onTestFinished(() => removeDirectory(directory));
  for (const name of ['package.json', 'bin', 'dist', 'proto']) cpSync(join(ROOT, name), join(directory, name), { recursive: true });
  mkdirSync(join(directory, 'node_modules'));
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (name !== 'zookeeper') symlinkSync(join(ROOT, 'node_modules', name), join(directory, 'node_modules', name));
  }
  return directory;
}

describe('without the npm package zookeeper', () => {
  it('a start with FENCEGATE_COORDINATOR=zookeeper ends with 1 and one line that says what to install; the embedded coordinator needs none', async () => {
    const program = await installedWithoutOptional();
    const serve = (settings: Readonly<Record<string, string>>): CliProcess => {
      const own = { FENCEGATE_PORT: '0', FENCEGATE_VOLUMES: 'names=', FENCEGATE_DATA_DIR: join(program, 'data') };
      const environment = { PATH: process.env['PATH'] ?? '', ...own, ...settings };
      const started = new CliProcess([join(program, 'bin/fencegate.cjs'), 'serve'], environment, program);
      onTestFinished(() => started.signal('SIGKILL'));
      return started;
    };
    const zookeeper = serve({ FENCEGATE_COORDINATOR: 'zookeeper', FENCEGATE_ZOOKEEPER_CONNECT: '127.0.0.1:1' });
    expect(await zookeeper.ended()).toMatchObject({ code: 1 });
    expect(zookeeper.stderr).toMatch(/^fencegate: FENCEGATE_COORDINATOR=zookeeper needs the npm package zookeeper, .*npm install zookeeper.*\n$/);
    await serve({}).says('"message":"listening"');
  });
});
