import { spawnSync } from 'node:child_process';
import { lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { BreakReport } from '../../src/client/contract/answers.ts';
import { BIN, CommandLine } from '../support/command-line.ts';
import { commandLineSuite, ownDirectory } from '../support/command-line-suite.ts';
import { GatewayProcess } from '../support/gateway-process.ts';

const lab = commandLineSuite();
const local = (name: string): string => join(lab.directory, name);

describe('where fencegate get puts a file', () => {
  it('a link, a device or a pipe stays what it is, and is written into', async () => {
    await lab.client.put('v/g.txt', 'fetched\n');
    writeFileSync(local('linked.txt'), 'a longer text of before');
    symlinkSync('linked.txt', local('link'));
    symlinkSync('/dev/null', local('null'));
    spawnSync('mkfifo', [local('pipe')]);
    for (const name of ['link', 'null']) expect((await lab.cli.run('get', 'v/g.txt', name)).code).toBe(0);
    const shell = spawnSync('sh', ['-c', 'cat pipe > read & node "$FENCEGATE" get v/g.txt pipe > said; wait'], {
      cwd: lab.directory,
      env: lab.cli.environment,
    });
    expect(shell.status).toBe(0);
    expect([lstatSync(local('link')).isSymbolicLink(), lstatSync(local('null')).isSymbolicLink(), lstatSync(local('pipe')).isFIFO()]).toEqual([
      true,
      true,
      true,
    ]);
    expect([readFileSync(local('linked.txt'), 'utf8'), readFileSync(local('read'), 'utf8')]).toEqual(['fetched\n', 'fetched\n']);
    expect(lstatSync('/dev/null').isCharacterDevice()).toBe(true);
  });

  it('/dev/stdout is standard output, also where that is a file, which is not begun anew', async () => {
    await lab.client.put('v/out.txt', 'fetched\n');
    spawnSync('sh', ['-c', `echo before > out; ${process.execPath} ${BIN} get v/out.txt /dev/stdout >> out`], {
      cwd: lab.directory,
      env: lab.cli.environment,
    });
    expect(readFileSync(local('out'), 'utf8')).toBe('before\nfetched\n');
    expect((await lab.cli.run('get', 'v/out.txt', '/dev/stdout', '--json')).code).toBe(64);
    expect(lstatSync('/dev/stdout').isSymbolicLink()).toBe(true);
  });

  it('what is no plain file there could not be got, which is 1: no write was refused', async () => {
    await lab.client.put('v/d/x', 'x');
    expect(await lab.cli.run('get', 'v/d', 'd.txt')).toMatchObject({ code: 1, stderr: expect.stringContaining('is_a_directory') });
  });
});

describe('fencegate edit of a file that was changed beside the gateway a moment ago', () => {
  it('puts back only onto what it fetched', async () => {
    await lab.client.put('v/moment.txt', 'before');
    const real = join(lab.gateway.directory, 'v/moment.txt');
    writeFileSync(real, 'around');
    const { code } = await lab.cli.run('edit', 'v/moment.txt', '--', 'sh', '-c', `cat {} > fetched; echo again > ${real}; echo edited > {}`);
    expect([code, readFileSync(real, 'utf8'), readFileSync(local('fetched'), 'utf8')]).toEqual([65, 'again\n', 'around']);
  });

  it('edits it once it rests', async () => {
    await lab.client.put('v/rests.txt', 'before');
    const real = join(lab.gateway.directory, 'v/rests.txt');
    writeFileSync(real, 'around');
    expect((await lab.cli.run('edit', 'v/rests.txt', '--', 'sed', '-i', 's/around/edited/', '{}')).code).toBe(0);
    expect(readFileSync(real, 'utf8')).toBe('edited');
  });
});

describe('what administrators do by the command line', () => {
  it('lock break --grace gives the holder the time, says until when, and ends the lease then', async () => {
    const lease = await lab.client.lease('v/broken.txt', { ttlMs: 60_000 });
    const report = await lab.cli.json<BreakReport>('lock', 'break', 'v/broken.txt', '--reason', 'maintenance', '--grace', '2s');
    expect([report.state, Date.parse(report.deadline ?? '') > 0]).toEqual(['breaking', true]);
    expect((await lab.cli.run('lock', 'show', 'v/broken.txt')).stdout).toContain('holds');
    const next = await lab.client.lease('v/broken.txt');
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(report.deadline ?? ''));
    expect(lease.state).toBe('lost');
    await next.release();
  });

  it('lock break names whom it is of: sent again for a lease that it has ended it says the same, and breaks nobody else', async () => {
    await lab.client.lease('v/again.txt', { ttlMs: 60_000 });
    const order = ['lock', 'break', 'v/again.txt', '--reason', 'maintenance'] as const;
    const first = await lab.cli.json<BreakReport>(...order);
    const next = await lab.client.lease('v/again.txt');
    const [{ lease_ref: ref } = { lease_ref: '' }] = first.leases;
    const { leaseRef } = next;
    expect(await lab.cli.json<BreakReport>(...order, '--lease', ref)).toEqual(first);
    await next.confirm();
    await next.release();
    expect(await lab.cli.run(...order)).toMatchObject({ code: 1, stderr: expect.stringMatching(/^fencegate: v\/again\.txt is free: /) });
    expect(await lab.cli.run(...order, '--lease', String(leaseRef))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/: not held on v\/again\.txt any more, and not ended by a break, and nothing was changed\n/),
    });
  });

  it('volume adopt opens a volume of a gateway that is gone, in one that runs', async () => {
    const own = await ownDirectory();
    mkdirSync(join(own, 'w'));
    const volumes = { FENCEGATE_VOLUMES: `w=${join(own, 'w')}` };
    await (await GatewayProcess.start(own, { environment: { ...volumes, FENCEGATE_DATA_DIR: join(own, 'old-data') } })).stop();
    const gateway = await GatewayProcess.start(own, {
      environment: { FENCEGATE_VOLUMES: `v=${join(own, 'v')},w=${join(own, 'w')}`, FENCEGATE_DATA_DIR: join(own, 'new-data') },
    });
    const cli = new CommandLine(gateway.url, own);
    expect((await cli.runWith('x', 'put', '-', 'w/x')).code).toBe(69);
    expect((await cli.run('volume', 'adopt', 'w')).code).toBe(64);
    expect(await cli.run('volume', 'adopt', 'w', '--reason', 'the old host is gone')).toEqual({
      code: 0,
      stdout: 'w is open, fence level incarnation\n',
      stderr: '',
    });
    expect((await cli.runWith('x', 'put', '-', 'w/x')).code).toBe(0);
    const record: unknown = JSON.parse((await cli.run('audit', '--action', 'volume_adopt', '--json')).stdout);
    expect(record).toMatchObject({ detail: { reason: 'the old host is gone' } });
  });
});
