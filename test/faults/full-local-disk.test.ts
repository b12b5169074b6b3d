import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { commandLineSuite } from '../support/command-line-suite.ts';
import { cannotMount, type Mounted, mountTmpfs } from '../support/mounted.ts';
import { describeWhere } from '../support/needs.ts';

const lab = commandLineSuite();

describeWhere(cannotMount, 'a local disk that is full', () => {
  let disk: Mounted;

  beforeAll(async () => {
    disk = mountTmpfs('size=256k');
    await lab.client.put('v/big.bin', Buffer.alloc(1_048_576, 'x'));
  });
  afterAll(() => disk.unmount());

  const says = (file: string): object => ({
    code: 1,
    stdout: '',
    stderr: `fencegate: ${file}: no room left (ENOSPC)\nfencegate: next: make room, or name another place\n`,
  });

  it('leaves no part of what is fetched, names the file, and keeps what was there', async () => {
    const file = join(disk.path, 'big.bin');
    expect(await lab.cli.run('get', 'v/big.bin', file)).toEqual(says(file));
    expect(readdirSync(disk.path)).toEqual([]);
    writeFileSync(file, 'of yesterday');
    expect(await lab.cli.run('get', 'v/big.bin', disk.path)).toEqual(says(file));
    expect([readdirSync(disk.path), readFileSync(file, 'utf8')]).toEqual([['big.bin'], 'of yesterday']);
  });

  it('ends edit before its command runs, with the name of the copy', async () => {
    const { code, stdout, stderr } = await lab.cli.with({ TMPDIR: disk.path }).run('edit', 'v/big.bin', '--', 'echo', '{}');
    expect([code, stdout, stderr]).toEqual([
      1,
      '',
      expect.stringMatching(/^fencegate: \S+\/fencegate-edit-\S+\/big\.bin: no room left \(ENOSPC\)\n/),
    ]);
    expect(readdirSync(disk.path).filter((name) => name.startsWith('fencegate-edit'))).toEqual([]);
    expect((await lab.client.lock('v/big.bin')).holders).toEqual([]);
  });

  it('is what saveTo of the SDK rejects with, by the name of the file', async () => {
    const path = join(disk.path, 'saved.bin');
    await expect((await lab.client.get('v/big.bin')).saveTo(path)).rejects.toMatchObject({ code: 'ENOSPC', path });
  });
});
