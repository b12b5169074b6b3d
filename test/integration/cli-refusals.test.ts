import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { BIN } from '../support/command-line.ts';
import { commandLineSuite } from '../support/command-line-suite.ts';
import { freePort } from '../support/free-port.ts';

const lab = commandLineSuite();

beforeAll(() => {
  writeFileSync(join(lab.directory, 'a.txt'), 'a');
  mkdirSync(join(lab.directory, 'taken/there'), { recursive: true });
});

const contentOf = async (resource: string): Promise<string> => (await lab.client.get(resource)).text();

/** A script for bash that breaks the lock of the command that runs it, so soon that nobody is told before it ends. */
function breakOwn(resource: string): string {
  const { hostname, port } = new URL(lab.gateway.url);
  const body = JSON.stringify({ resource, reason: 'a test' });
  const head = `POST /v1/admin/locks/break HTTP/1.1\\r\\nHost: ${hostname}\\r\\nContent-Type: application/json\\r\\nContent-Length: ${body.length}\\r\\nConnection: close\\r\\n\\r\\n`;
  return `exec 3<>/dev/tcp/${hostname}/${port}; printf '${head}${body}' >&3; read -r status <&3; case "$status" in *" 200 "*) ;; *) exit 9 ;; esac`;
}

describe('a shared lease', () => {
  const inside = (resource: string, script: string) => lab.cli.run('exec', '--shared', '--lock', resource, '--', 'sh', '-c', script);
  const ours = 'node "$FENCEGATE"';

  it('is never taken for an exclusive one: exec inside exec --shared is refused with 64, and does not run its command', async () => {
    const { code, stdout, stderr } = await inside(
      'v/s/1',
      `${ours} exec --lock v/s/1 -- echo ran; echo "code $?"; ${ours} exec --shared --lock v/s/1 -- echo reads`,
    );
    expect([code, stdout]).toEqual([0, 'code 64\nreads\n']);
    expect(stderr).toMatch(/^fencegate: overlapping_lease: .* shared.*\nfencegate: next: .*without --shared\n$/);
  });

  it('lets edit not even fetch, and refuses put, rm and mv with 65', async () => {
    await lab.client.put('v/s/2', 'before');
    const script = [`edit v/s/2 -- sed -i s/before/after/ {}`, 'put a.txt v/s/2', 'rm v/s/2', 'mv v/s/2 v/s/3'].map(
      (command) => `${ours} ${command}; echo $?`,
    );
    const { stdout, stderr } = await inside('v/s/2', script.join('; '));
    expect(stdout).toBe('64\n65\n65\n65\n');
    expect(stderr.match(/lease_is_shared/g)).toHaveLength(3);
    expect(await contentOf('v/s/2')).toBe('before');
  });
});

describe('a lease that is lost', () => {
  it('ends edit with 70 also when only the gateway knows: the file stays, the copy is kept, and the next step is another edit', async () => {
    await lab.client.put('v/l/1', 'before');
    const { code, stderr } = await lab.cli.run('edit', 'v/l/1', '--', 'bash', '-c', `${breakOwn('v/l/1')}; echo edited > {}`);
    const [, copy = ''] = /kept in (\S+)/.exec(stderr) ?? [];
    expect(readFileSync(copy, 'utf8')).toBe('edited\n');
    rmSync(join(copy, '..'), { recursive: true });
    expect([code, await contentOf('v/l/1')]).toEqual([70, 'before']);
    expect(stderr).toMatch(/v\/l\/1 was left as it was: the lease was lost\nfencegate: next: look at what is there now, and edit that\n/);
    expect(stderr).not.toContain('granted');
  });

  it('ends exec with 70 when it was broken so late that the command ended before anybody was told', async () => {
    const { code, stderr } = await lab.cli.run('exec', '--lock', 'v/l/2', '--', 'bash', '-c', breakOwn('v/l/2'));
    expect([code, stderr]).toEqual([70, expect.stringContaining('v/l/2: The lease is lost: broken, says the gateway.')]);
  });

  it('R25: is 65 for put, rm and mv, whose write the gateway refuses, and the command around them is ended with 70', async () => {
    await lab.client.put('v/l/3', 'before');
    const script = `trap "told=yes" TERM; ${breakOwn('v/l/3')}; until [ "$told" ]; do sleep 0.02; done; for c in "put a.txt v/l/3" "rm v/l/3" "mv v/l/3 v/l/4"; do node "$FENCEGATE" $c; echo $?; done`;
    const { code, stdout, stderr } = await lab.cli.run('exec', '--lock', 'v/l/3', '--ttl', '1m', '--grace', '20s', '--', 'bash', '-c', script);
    expect([code, stdout]).toEqual([70, '65\n65\n65\n']);
    expect(stderr).toMatch(/stale_token: .*\nfencegate: next: stop: the lease is over/);
    expect(await contentOf('v/l/3')).toBe('before');
  });
});

describe('standard output', () => {
  /** More than a pipe takes in one go. */
  const MANY = 600;
  const shell = (script: string) =>
    spawnSync('bash', ['-c', `set -o pipefail; ${script}`], { cwd: lab.directory, encoding: 'utf8', env: lab.cli.environment });

  beforeAll(async () => {
    await lab.client.put('v/there', 'x');
    const many = join(lab.gateway.directory, 'v', 'many');
    mkdirSync(many);
    for (let number = 0; number < MANY; number += 1) writeFileSync(join(many, `${number}${'x'.repeat(200)}`), '');
  });

  it('has all of it, however slow its reader is', () => {
    const { status, stdout } = shell('node "$FENCEGATE" ls v/many/ --json | (sleep 0.7; cat)');
    expect(status).toBe(0);
    expect(stdout.trim().split('\n')).toHaveLength(MANY);
  });

  it.each([
    ['ls', 'v/many/'],
    ['get', 'v/there', '-'],
    ['audit', '--follow', '--json'],
    ['token', 'create'],
    ['exec', '--help'],
  ])('on a disk that is full is said in a line, and ends %s with 1', (...argv) => {
    const { status, stderr } = shell(`node "$FENCEGATE" ${argv.join(' ')} > /dev/full`);
    expect([status, stderr]).toEqual([1, 'fencegate: standard output: no room left (ENOSPC)\n']);
  });

  it('that nobody reads any more ends a command with 141, without a word', () => {
    const { status, stderr } = shell('node "$FENCEGATE" ls v/many/ --json | true');
    expect([status, stderr]).toEqual([141, '']);
  });

  it('that nobody reads any more ends a command also while it has nothing to write', () => {
    // The one record is read, and nothing is asked for again before the day is over.
    const { status, stdout, stderr } = shell('timeout 60 node "$FENCEGATE" audit v/there --limit 1 --follow --json --every 24h | head -1');
    expect([status, stdout.split('\n').length, stderr]).toEqual([141, 2, '']);
  });
});

describe('what goes wrong is said with what to do next', () => {
  it.each([
    [
      'a local file that is not there',
      ['put', 'nowhere.csv', 'v/x'],
      1,
      /^fencegate: nowhere\.csv: no such file or directory \(ENOENT\)\nfencegate: next: name one that is there/,
    ],
    ['a directory in place of a local file', ['put', '.', 'v/x'], 64, /^fencegate: \. is no file\n$/],
    [
      'a place for the answer that is not there',
      ['get', 'v/there', 'no/such/place'],
      1,
      /^fencegate: no\/such\/place: no such file or directory \(ENOENT\)\nfencegate: next: /,
    ],
    [
      'standard output for a file and for JSON',
      ['get', 'v/there', '-', '--json'],
      64,
      /^fencegate: with - standard output is the file, and has no room for --json; name a local file/,
    ],
    [
      'a file in place of a directory',
      ['put', 'a.txt', 'v/there/x'],
      65,
      /^fencegate: not_a_directory: .*\nfencegate: next: a part of the path is a file/,
    ],
    ['a condition that rm cannot meet', ['rm', 'v/there', '--if-none-match', '*'], 64, /^fencegate: unknown option '--if-none-match'/],
    [
      'a command of edit that removes the copy',
      ['edit', 'v/there', '--', 'rm', '{}'],
      1,
      /^fencegate: v\/there was left as it was: the command left no file where its copy was\nfencegate: next: fencegate rm [^\n]*\n$/,
    ],
    [
      'a longest hold that leaves exec no time',
      ['exec', '--lock', 'v/there', '--max-hold', '2s', '--grace', '5s', '--', 'true'],
      64,
      /^fencegate: --max-hold 2s leaves the command no time: it is ended 5\.2s before/,
    ],
    [
      'a directory in place of a file',
      ['get', 'v/there/', 'listing'],
      64,
      /^fencegate: v\/there\/ names a directory: fencegate ls shows what is in it\n$/,
    ],
    [
      'a data directory without a journal',
      ['backup', 'copy.db'],
      1,
      /^fencegate: there is no journal in .*\nfencegate: next: set FENCEGATE_DATA_DIR/,
    ],
    [
      'a lock that nobody holds',
      ['lock', 'break', 'v/free', '--reason', 'x'],
      1,
      /^fencegate: v\/free is free: nobody holds it.*\nfencegate: next: fencegate lock list/,
    ],
    [
      'records that never end, up to a time',
      ['audit', '--follow', '--until', '2030-01-01T00:00:00Z'],
      64,
      /^fencegate: --follow goes on with what comes, and --until ends: leave one of them away\n$/,
    ],
    ['records that never end, and their chain', ['audit', '--follow', '--verify'], 64, /^fencegate: --verify .* leave one of them away\n$/],
    [
      'records of a volume that is none',
      ['audit', 'nowhere/x'],
      1,
      /^fencegate: volume_not_found: There is no volume nowhere, and no record of one that fits\.\nfencegate: next: fencegate ls shows the volumes\n$/,
    ],
    ['records of a volume that is none, as they come', ['audit', 'nowhere', '--follow', '--json'], 1, /^fencegate: volume_not_found: /],
    [
      'a local disk that is full',
      ['get', 'v/there', '/dev/full'],
      1,
      /^fencegate: \/dev\/full: no room left \(ENOSPC\)\nfencegate: next: make room, or name another place\n$/,
    ],
    [
      'a directory where the local file goes',
      ['get', 'v/there', 'taken'],
      1,
      /^fencegate: taken\/there: is a directory \(EISDIR\)\nfencegate: next: name a file\n$/,
    ],
    [
      'a file in the way to the local one',
      ['get', 'v/there', 'a.txt/there'],
      1,
      /^fencegate: a\.txt\/there: a part of the path is no directory \(ENOTDIR\)\nfencegate: next: name a path/,
    ],
    ['a command that is none', ['lokc'], 64, /^fencegate: unknown command 'lokc'\n\(Did you mean lock\?\)\n/],
    ['an option that is none', ['ls', '--jsn'], 64, /^fencegate: unknown option '--jsn'\n\(Did you mean --json\?\)\n/],
    [
      'a duration without a unit',
      ['put', 'a.txt', 'v/x', '--wait', '5'],
      64,
      /^fencegate: option '--wait <duration>' argument '5' is invalid\. Write a duration/,
    ],
    ['an ETag with a line break', ['put', 'a.txt', 'v/x', '--if-match', '"a\nb"'], 64, /^fencegate: ifMatch must be a string without line breaks/],
    ['a label that no header can hold', ['ls', '--client-id', '日本'], 64, /^fencegate: clientId must be a string without/],
  ] as const)('%s', async (_what, argv, code, says) => {
    await lab.client.put('v/there', 'x');
    const result = await lab.cli.with({ FENCEGATE_DATA_DIR: 'nowhere' }).run(...argv);
    expect(result.stderr).toMatch(says);
    expect([result.code, result.stdout]).toEqual([code, '']);
  });

  it('what a command of edit put beside the place of its copy is kept, and the lease is released', async () => {
    await lab.client.put('v/moved', 'before');
    const { code, stderr } = await lab.cli.run('edit', 'v/moved', '--', 'sh', '-c', 'echo mine > {}.new; rm {}');
    const [, kept = ''] = /kept in (\S+)\n/.exec(stderr) ?? [];
    expect([code, readFileSync(join(kept, 'moved.new'), 'utf8'), await contentOf('v/moved')]).toEqual([1, 'mine\n', 'before']);
    rmSync(kept, { recursive: true });
    expect((await lab.client.lock('v/moved')).holders).toEqual([]);
  });

  it('config check says in JSON what came of each setting, under the name that it has in the file', async () => {
    const config = await lab.cli.with({ FENCEGATE_VOLUMES: 'a=a,b=' }).json<Record<string, unknown>>('config', 'check');
    expect(config).toMatchObject({
      data_dir: join(lab.directory, 'data'),
      principals: 0,
      volumes: [
        { name: 'a', require_token: 'false', lease: { ttl_ms_min: 1_000 }, limits: { in_flight: expect.any(Number) } },
        { name: 'b', path: null },
      ],
    });
    expect(JSON.stringify(config)).not.toMatch(/"\w*[a-z][A-Z]\w*":/);
  });

  it('what only says that something was done says it in JSON for scripts, too', async () => {
    expect(Object.keys(await lab.cli.json<object>('token', 'create'))).toEqual(['token', 'token_sha256']);
    const here = lab.cli.with({ FENCEGATE_DATA_DIR: join(lab.gateway.directory, 'data') });
    expect(await here.json('backup', 'copy.db')).toEqual({ file: join(lab.directory, 'copy.db') });
    const { lease_id: id } = await lab.cli.json<{ lease_id: string }>('lease', 'acquire', 'v/json');
    expect(await lab.cli.with({ FENCEGATE_LEASE_ID: id }).json('lease', 'release')).toEqual({ state: 'released' });
  });
});

describe('a terminal', () => {
  it('the bar is gone before the result is shown, and the line of the result is whole', async () => {
    writeFileSync(join(lab.directory, 'big.bin'), Buffer.alloc(8 * 1_048_576));
    const command = `${process.execPath} ${BIN} put big.bin v/big.bin`;
    const child = spawn('script', ['-qec', command, '/dev/null'], { cwd: lab.directory, env: { ...lab.cli.environment, TERM: 'xterm' } });
    let shown = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
    await once(child, 'close');
    // Nothing stands between the line that was wiped and what is shown for good.
    expect(shown.slice(shown.lastIndexOf('\u001b[2K'))).toMatch(new RegExp(`^${String.raw`\u001b\[2K`}v/big\\.bin {2}8388608 bytes .*\r\n$`));
  });
});

describe('a gateway that is gone', () => {
  it('is said once, with 69', async () => {
    const nobody = lab.cli.with({ FENCEGATE_URL: `http://127.0.0.1:${await freePort()}` });
    expect(await nobody.run('ls')).toMatchObject({
      code: 69,
      stdout: '',
      stderr: expect.stringMatching(/^fencegate: gateway_unreachable: .*\nfencegate: next: .*\n$/),
    });
  });
});
