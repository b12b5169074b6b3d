import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { AuditRecord, DoctorReport, Entry, Lease, Lock, WrittenFile } from '../../src/client/contract/answers.ts';
import { BIN, CommandLine } from '../support/command-line.ts';
import { commandLineSuite, ownDirectory } from '../support/command-line-suite.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { until } from '../support/until.ts';

const lab = commandLineSuite();

const contentOf = async (resource: string): Promise<string> => (await lab.client.get(resource)).text();
const local = (name: string): string => join(lab.directory, name);

describe('files', () => {
  it('put and get carry bytes as they are, and say what was written', async () => {
    const bytes = Buffer.from([0, 255, 10, 13, 128]);
    writeFileSync(local('odd name #1.bin'), bytes);
    const written = await lab.cli.json<WrittenFile>('put', 'odd name #1.bin', 'v/dir/');
    expect(written).toMatchObject({ resource: 'v/dir/odd name #1.bin', size_bytes: 5 });
    expect((await lab.cli.run('get', 'v/dir/odd name #1.bin', 'back.bin')).code).toBe(0);
    expect(readFileSync(local('back.bin'))).toEqual(bytes);
  });

  it('get leaves a local file alone when there is nothing to get, and no part of one', async () => {
    writeFileSync(local('kept.txt'), 'kept');
    expect((await lab.cli.run('get', 'v/nowhere.txt', 'kept.txt')).code).toBe(1);
    expect(readFileSync(local('kept.txt'), 'utf8')).toBe('kept');
    expect(readdirSync(lab.directory).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  it('put says 75 when somebody holds the file for longer than it waits, 65 when a condition is not met, 1 without a local file', async () => {
    writeFileSync(local('a.txt'), 'a');
    const lease = await lab.client.lease('v/taken.txt');
    expect((await lab.cli.run('put', 'a.txt', 'v/taken.txt', '--wait', '0')).code).toBe(75);
    await lease.release();
    expect((await lab.cli.run('put', 'a.txt', 'v/taken.txt', '--if-match', '"1-1-1"')).code).toBe(65);
    expect((await lab.cli.run('put', 'not-there.txt', 'v/taken.txt')).code).toBe(1);
    expect((await lab.cli.run('put', 'a.txt', 'taken')).code).toBe(64);
  });

  it('ls shows strange names without letting them rule the terminal', async () => {
    await lab.client.put('v/names/a b.txt', 'x');
    const entries = (await lab.cli.run('ls', 'v/names/', '--json')).stdout.trim().split('\n');
    expect(entries.map((line) => (JSON.parse(line) as Entry).name)).toEqual(['a b.txt']);
    expect((await lab.cli.run('ls', 'v/names/')).stdout).toMatch(/^TYPE {2}BYTES {2}MODIFIED +NAME\nfile {2}1 +\S+ +a b\.txt\n$/);
  });

  it('mv replaces only with --force; rm removes files and empty directories', async () => {
    await lab.client.put('v/m/a', 'a');
    await lab.client.put('v/m/b', 'b');
    expect(await lab.cli.run('mv', 'v/m/a', 'v/m/b')).toMatchObject({ code: 65, stderr: expect.stringContaining('--force replaces it') });
    expect((await lab.cli.run('mv', 'v/m/a', 'v/m/b', '--force')).code).toBe(0);
    expect(await contentOf('v/m/b')).toBe('a');
    expect((await lab.cli.run('rm', 'v/m/')).code).toBe(65);
    expect((await lab.cli.run('rm', 'v/m/b')).code).toBe(0);
    expect((await lab.cli.run('rm', 'v/m/')).code).toBe(0);
    expect((await lab.cli.run('ls', 'v/m/')).code).toBe(1);
  });

  it('a transfer shows a bar on a terminal, and nothing else does', async () => {
    writeFileSync(local('big.bin'), Buffer.alloc(8 * 1_048_576));
    const command = `${process.execPath} ${BIN} put big.bin v/big.bin`;
    const child = spawn('script', ['-qec', command, '/dev/null'], { cwd: lab.directory, env: { ...lab.cli.environment, TERM: 'xterm' } });
    let shown = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
    await once(child, 'close');
    expect([child.exitCode, shown]).toEqual([0, expect.stringMatching(/v\/big\.bin .*% {2}.* of 8\.0 MiB/)]);
    expect((await lab.cli.run('put', 'big.bin', 'v/big.bin')).stderr).toBe('');
  });
});

describe('edit', () => {
  it('makes any program a fenced one', async () => {
    await lab.client.put('v/e/draft.txt', 'draft\n');
    expect(await lab.cli.run('edit', 'v/e/draft.txt', '--', 'sed', '-i', 's/draft/final/', '{}')).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(await contentOf('v/e/draft.txt')).toBe('final\n');
    const records: AuditRecord[] = [];
    for await (const record of lab.client.audit({ path: 'e/draft.txt' })) records.push(record);
    const newest = (action: string): AuditRecord | undefined => records.find((record) => record.action === action);
    expect(newest('put')?.fencing_token).toBe(newest('lease_grant')?.fencing_token);
  });

  it('begins a new file empty', async () => {
    await lab.cli.run('edit', 'v/e/new.txt', '--', 'sh', '-c', 'wc -c < {} >> {}');
    expect((await contentOf('v/e/new.txt')).trim()).toBe('0');
  });

  it('writes nothing when the command changes nothing', async () => {
    await lab.client.put('v/e/same.txt', 'same');
    const before = (await lab.client.get('v/e/same.txt')).etag;
    expect((await lab.cli.run('edit', 'v/e/same.txt', '--', 'touch', '{}')).code).toBe(0);
    expect((await lab.client.get('v/e/same.txt')).etag).toBe(before);
  });

  it('leaves the file as it was when the command fails, keeps the copy and tells where', async () => {
    await lab.client.put('v/e/kept.txt', 'before');
    const { code, stderr } = await lab.cli.run('edit', 'v/e/kept.txt', '--', 'sh', '-c', 'echo half > {}; exit 4');
    expect(code).toBe(4);
    expect(await contentOf('v/e/kept.txt')).toBe('before');
    const [, copy = ''] = /kept in (\S+)/.exec(stderr) ?? [];
    expect(readFileSync(copy, 'utf8')).toBe('half\n');
    rmSync(join(copy, '..'), { recursive: true });
  });

  it('does not put onto what somebody changed around the gateway, and says 65', async () => {
    await lab.client.put('v/e/bypassed.txt', 'before');
    const real = join(lab.gateway.directory, 'v/e/bypassed.txt');
    const { code, stderr } = await lab.cli.run('edit', 'v/e/bypassed.txt', '--', 'sh', '-c', `echo around > ${real}; echo edited > {}`);
    expect(code).toBe(65);
    expect(readFileSync(real, 'utf8')).toBe('around\n');
    const [, copy = ''] = /kept in (\S+)/.exec(stderr) ?? [];
    rmSync(join(copy, '..'), { recursive: true });
  });

  it('is ended with its command when the lease is broken, and says 70', async () => {
    await lab.client.put('v/e/broken.txt', 'before');
    const process = lab.cli.start('edit', 'v/e/broken.txt', '--ttl', '2s', '--', 'sh', '-c', 'touch edit-ready; : {}; exec sleep 1000');
    await until(() => (existsSync(local('edit-ready')) ? true : null));
    await lab.client.breakLock('v/e/broken.txt', { reason: 'a test' });
    expect(await process.ended()).toEqual({ code: 70, signal: null });
  });

  it('wants to know where the copy goes', async () => {
    expect(await lab.cli.run('edit', 'v/e/x.txt', '--', 'vi')).toMatchObject({ code: 64, stderr: expect.stringContaining('{}') });
  });
});

describe('leases and locks', () => {
  it('a lease outlives the command that took it, is renewed and released by others', async () => {
    const lease = await lab.cli.json<Lease>('lease', 'acquire', 'v/l/1', '--ttl', '1m');
    const { holders } = await lab.cli.json<Lock>('lock', 'show', 'v/l/1');
    expect(holders).toMatchObject([{ lease_ref: lease.lease_ref }]);
    const there = lab.cli.with({ FENCEGATE_LEASE_ID: lease.lease_id });
    expect((await there.json<Lease>('lease', 'renew')).state).toBe('held');
    expect((await there.run('lease', 'release')).code).toBe(0);
    expect((await there.run('lease', 'release')).code).toBe(0);
    expect((await there.run('lease', 'renew')).code).toBe(70);
    expect((await lab.cli.run('lease', 'renew')).code).toBe(64);
  });

  it('stands in line, and says 75 when it takes too long', async () => {
    const held = await lab.client.lease('v/l/2');
    expect(await lab.cli.run('lease', 'acquire', 'v/l/2', '--wait', '1s')).toMatchObject({
      code: 75,
      stderr: expect.stringContaining('Held by test since 20'),
    });
    const waiting = lab.cli.start('lease', 'acquire', 'v/l/2', '--wait', '1m', '--export');
    await until(async () => ((await lab.client.lock('v/l/2')).queue_length === 1 ? true : null));
    await held.release();
    expect((await waiting.ended()).code).toBe(0);
    expect(waiting.stdout).toMatch(/^export FENCEGATE_RESOURCE='v\/l\/2'\nexport FENCEGATE_LEASE_ID='\S+'\nexport FENCEGATE_FENCING_TOKEN='\d+'\n$/);
  });

  it('lock show and lock list say what the lock is: times to live, lock-delay, what holds it back, how it is fenced', async () => {
    await lab.client.lease('v/l/4', { ttlMs: 90_000, lockDelayMs: 600_000, metadata: { reason: 'nightly\nclose' } });
    const held = (await lab.cli.run('lock', 'show', 'v/l/4')).stdout;
    expect(held).toMatch(/^held back for +-\nother recipes +-\nfence level +incarnation\n/m);
    expect(held).toMatch(/EXPIRES IN +TTL +LOCK-DELAY +PRIORITY +LEASE +REASON$/m);
    expect(held).toMatch(/^holds +test .* 1m 30s +10m +5 +\S+ +nightly\S+close$/m);
    await lab.client.breakLock('v/l/4', { reason: 'test' });
    expect((await lab.cli.run('lock', 'show', 'v/l/4')).stdout).toMatch(/^state +free\n(.*\n)*held back for +(10m|9m \d+s)/m);
    const list = (await lab.cli.run('lock', 'list', '--volume', 'v')).stdout;
    expect(list).toMatch(/^RESOURCE .* MARK +HELD BACK +OTHERS +FENCE$/m);
    expect(list).toMatch(/^v\/l\/4 +- +- .* (10m|9m \d+s) +0 +incarnation$/m);
  });

  it('lock show tells what leases of the command line say they are for', async () => {
    const acquired = await lab.cli.run('lease', 'acquire', 'v/l/5', '--reason', 'quarter close', '--json');
    expect((await lab.cli.run('lock', 'show', 'v/l/5')).stdout).toMatch(/^holds .* quarter close$/m);
    const waiting = lab.cli.start('exec', '--lock', 'v/l/5', '--reason', 'fix of a typo', '--', 'true');
    await until(async () => ((await lab.client.lock('v/l/5')).queue_length === 1 ? true : null));
    expect((await lab.cli.run('lock', 'show', 'v/l/5')).stdout).toMatch(/^waits .* fix of a typo$/m);
    await lab.cli.run('lease', 'release', (JSON.parse(acquired.stdout) as { lease_id: string }).lease_id);
    expect((await waiting.ended()).code).toBe(0);
  });

  it('lock list filters', async () => {
    const lease = await lab.client.lease('v/l/3');
    const list = async (...flags: string[]) => (await lab.cli.run('lock', 'list', '--json', ...flags)).stdout;
    expect(await list('--volume', 'v')).toContain('"v/l/3"');
    expect(await list('--older-than', '1h')).not.toContain('"v/l/3"');
    expect(await list('--state', 'waiting')).not.toContain('"v/l/3"');
    await lease.release();
  });
});

describe('audit', () => {
  it('follows what comes, each record once, until SIGINT', async () => {
    await lab.client.put('v/au/1', 'x');
    const process = lab.cli.start('audit', 'v/', '--path-prefix', 'au/', '--follow', '--json', '--every', '20ms');
    await process.says('"resource":"v/au/1"');
    await lab.client.put('v/au/2', 'x');
    await lab.client.put('v/au/3', 'x');
    await process.says('"resource":"v/au/3"');
    process.signal('SIGINT');
    expect((await process.ended()).code).toBe(0);
    const records = process.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as AuditRecord);
    expect(records.map(({ resource }) => resource)).toEqual(['v/au/1', 'v/au/2', 'v/au/3']);
  });

  it('outlasts a gateway that is away while it follows, says so once, and goes on; one that is away at the start is 69', async () => {
    await lab.client.put('v/away/1', 'x');
    let isAway = false;
    let refused = 0;
    // What a proxy says whose gateway is gone: the client does not try that again by itself.
    const proxy = createServer((request, response) => {
      if (isAway) {
        refused += 1;
        response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>');
        return;
      }
      void fetch(`${lab.gateway.url}${request.url}`).then(async (answer) =>
        response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' }).end(await answer.text()),
      );
    });
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void proxy.close());
    const there = lab.cli.with({ FENCEGATE_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
    const process = there.start('audit', 'v', '--path-prefix', 'away/', '--follow', '--json', '--every', '20ms');
    await process.says('"resource":"v/away/1"');
    isAway = true;
    await lab.client.put('v/away/2', 'x');
    await until(() => (refused > 2 ? true : null));
    expect((await there.run('audit')).code).toBe(69);
    isAway = false;
    await process.says('"resource":"v/away/2"');
    process.signal('SIGINT');
    expect((await process.ended()).code).toBe(0);
    expect(process.stderr).toMatch(/^unexpected_answer: .* Waiting until the gateway answers again\.\n$/);
  });
});

describe('doctor, fences, backup, adoption', () => {
  it('tells of a restored journal, ends with 1, and is content after a rebase in its data directory', async () => {
    const own = await ownDirectory();
    const first = await GatewayProcess.start(own);
    const here = new CommandLine(first.url, own, { FENCEGATE_DATA_DIR: join(own, 'data'), FENCEGATE_VOLUMES: `v=${join(own, 'v')}` });
    expect((await here.run('doctor')).code).toBe(0);
    expect(await here.run('backup', 'copy.sqlite')).toEqual({ code: 0, stdout: `${join(own, 'copy.sqlite')}\n`, stderr: '' });
    expect((await here.run('backup', 'copy.sqlite')).code).toBe(64);
    expect(await here.run('fence', 'rebase', '--offline', '--reason', 'too early')).toMatchObject({ code: 1, stdout: '' });
    await here.run('exec', '--lock', 'v/x', '--', 'true');
    await first.stop();
    for (const name of readdirSync(join(own, 'data'))) if (name.startsWith('journal.sqlite')) rmSync(join(own, 'data', name));
    copyFileSync(join(own, 'copy.sqlite'), join(own, 'data/journal.sqlite'));

    const second = await GatewayProcess.start(own);
    const restored = here.with({ FENCEGATE_URL: second.url });
    const report = JSON.parse((await restored.run('doctor', '--json')).stdout) as DoctorReport;
    expect(report.findings.map(({ severity }) => severity)).toContain('error');
    expect((await restored.run('doctor')).code).toBe(1);
    await second.stop();

    const rebased = await here.run('fence', 'rebase', '--offline', '--reason', 'restored');
    expect(rebased).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^tokens go on above \d+; every earlier one is void on v\n$/),
    });
    const third = await GatewayProcess.start(own);
    const back = here.with({ FENCEGATE_URL: third.url });
    expect((await back.run('doctor')).code).toBe(0);
    expect((await back.runWith('x', 'put', '-', 'v/x')).code).toBe(0);
    const [record] = (await back.run('audit', '--action', 'fence_rebase', '--json')).stdout.trim().split('\n');
    expect(JSON.parse(record ?? '')).toMatchObject({ principal: 'offline', detail: { reason: 'restored' } });
  });

  it('adopts the only volume of a gateway that could not start without, and makes no data directory by mistake', async () => {
    const own = await ownDirectory();
    await (await GatewayProcess.start(own)).stop();
    expect((await GatewayProcess.failing(own, { environment: { FENCEGATE_DATA_DIR: join(own, 'other-data') } })).code).toBe(1);
    const data = join(own, 'mistyped');
    const here = new CommandLine('http://127.0.0.1:9', own, { FENCEGATE_DATA_DIR: data, FENCEGATE_VOLUMES: `v=${join(own, 'v')}` });
    const order = ['--offline', '--reason', 'a test'];
    expect(await here.run('fence', 'rebase', ...order)).toEqual({
      code: 1,
      stdout: '',
      stderr: `fencegate: there is no journal in ${data} (FENCEGATE_DATA_DIR); nothing was made there\nfencegate: next: set FENCEGATE_DATA_DIR to the data directory of the gateway\n`,
    });
    expect(await here.run('volume', 'adopt', 'w', ...order)).toMatchObject({ code: 64, stderr: expect.stringContaining('there is no volume w in') });
    expect(existsSync(data)).toBe(false);
    expect(await here.run('volume', 'adopt', 'v', ...order)).toMatchObject({
      code: 0,
      stdout: 'v is open, fence level incarnation\n',
      stderr: expect.stringMatching(`^a new journal was begun in ${data} \\(FENCEGATE_DATA_DIR\\): .*\n$`),
    });
    const heir = await GatewayProcess.start(own, { environment: { FENCEGATE_DATA_DIR: data } });
    expect((await here.with({ FENCEGATE_URL: heir.url }).run('doctor')).code).toBe(0);
    await heir.stop();
    // Only its journal is lost: that is what a rebase is for.
    for (const name of readdirSync(data)) if (name.startsWith('journal.sqlite')) rmSync(join(data, name));
    expect(await here.run('fence', 'rebase', ...order)).toMatchObject({ code: 0, stderr: expect.stringContaining('a new journal was begun') });
  });

  it('fixes what is safe to fix, and first tells what it would do', async () => {
    const own = await ownDirectory();
    mkdirSync(join(own, 'v/.fencegate/00000000000000000000000000000abc'), { recursive: true });
    const here = new CommandLine((await GatewayProcess.start(own)).url, own);
    expect((await here.run('doctor')).stdout).toContain('unknown_directory');
    expect((await here.run('doctor', '--fix', '--dry-run')).stdout).toContain('would fix unknown_directory');
    expect(existsSync(join(own, 'v/.fencegate/00000000000000000000000000000abc'))).toBe(true);
    const fixed = await here.run('doctor', '--fix');
    expect([fixed.code, fixed.stdout]).toEqual([0, expect.stringContaining('nothing is left')]);
    expect(existsSync(join(own, 'v/.fencegate/00000000000000000000000000000abc'))).toBe(false);
    for (const flags of [['--dry-run'], ['--force', 'x', '--reason', 'r'], ['--fix', '--force', 'x'], ['--fix', '--reason', 'r']])
      expect((await here.run('doctor', ...flags)).code).toBe(64);
    // One finding by its id, and a reason; what is not there needs no force.
    expect(await here.run('doctor', '--fix', '--force', 'held_long.0', '--reason', 'host is down')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no such finding now.'),
    });
  });
});

describe('the program', () => {
  it('says what was meant', async () => {
    expect(await lab.cli.run('lokc')).toMatchObject({ code: 64, stderr: expect.stringContaining('Did you mean lock?') });
  });

  it('prints no colours into pipes, and none with NO_COLOR', () => {
    const bold = (environment: Record<string, string>): boolean => {
      const command = `${process.execPath} ${BIN} ls`;
      const env = { ...lab.cli.environment, TERM: 'xterm', ...environment };
      return spawnSync('script', ['-qec', command, '/dev/null'], { cwd: lab.directory, encoding: 'utf8', env }).stdout.includes('\u001b[1m');
    };
    expect([bold({}), bold({ NO_COLOR: '1' })]).toEqual([true, false]);
  });

  it('completes commands, subcommands, options and what comes after -- in bash', () => {
    symlinkSync(BIN, local('fencegate'));
    const completed = (...words: string[]): string[] => {
      const script = [
        'eval "$(fencegate completion bash)"',
        `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}`,
        '_fencegate; declare -p COMPREPLY',
      ].join('\n');
      const env = { ...lab.cli.environment, PATH: `${lab.directory}:${lab.cli.environment['PATH']}` };
      const { stdout } = spawnSync('bash', ['-c', script], { encoding: 'utf8', env });
      return [...stdout.matchAll(/\[\d+\]="([^"]*)"/g)].map(([, word = '']) => word);
    };
    expect(completed('fencegate', 'lo')).toEqual(['lock']);
    expect(completed('fencegate', 'lock', '')).toEqual(expect.arrayContaining(['show', 'list', 'break']));
    expect(completed('fencegate', 'exec', '--lo')).toEqual(['--lock']);
    expect(completed('fencegate', 'exec', '--lock', 'v/x', '--', 'base6')).toEqual(expect.arrayContaining(['base64']));
  });
});
