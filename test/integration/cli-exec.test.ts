import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { CliProcess } from '../support/cli-process.ts';
import { ownGateway } from '../support/command-line-suite.ts';
import { ExecSuite, isGone, isStopped, parentOf } from '../support/exec-suite.ts';
import { freePort } from '../support/free-port.ts';
import { until } from '../support/until.ts';
import { bearerOf, principalsFile } from '../support/volumes-gateway.ts';

/** In ms: long enough for a slow machine, short enough to wait for. */
const TTL_MS = 3_000;
const TTL = `${TTL_MS}ms`;

const suite = new ExecSuite();
const { lab } = suite;
/** A resource of each test's own. */
let resource: string;

beforeEach(() => {
  ({ resource } = suite.next());
});

const exec = (script: string, ...flags: readonly string[]): CliProcess => suite.exec(resource, script, ...flags);
const isFree = (): Promise<boolean> => suite.isFree(resource);
const appeared = (name: string): Promise<true> => suite.appeared(name);
const text = (name: string): string => suite.text(name);
const times = (name: string): number[] => suite.times(name);

describe('fencegate exec', () => {
  it('gives the command its lease, keeps its exit code, and releases', async () => {
    const process = exec(
      'echo "$FENCEGATE_URL $FENCEGATE_RESOURCE $FENCEGATE_FENCING_TOKEN $(test -n "$FENCEGATE_LEASE_ID" && echo secret)"; exit 7',
    );
    expect(await process.ended()).toEqual({ code: 7, signal: null });
    const { high_water_mark: mark } = await lab.client.lock(resource);
    expect(process.stdout).toBe(`${lab.gateway.url} ${resource} ${mark} secret\n`);
    expect(process.stderr).toBe('');
    expect(await isFree()).toBe(true);
  });

  it('leaves the environment of the command as its own caller made it, but for what tells of the lease', async () => {
    const process = exec('env');
    await process.ended();
    const names = process.stdout.match(/^\w+(?==)/gm)?.filter((name) => !(name in lab.cli.environment));
    // The shell sets the last ones itself.
    expect(names?.filter((name) => !['PWD', 'OLDPWD', 'SHLVL', '_'].includes(name)).sort()).toEqual([
      'FENCEGATE_FENCING_TOKEN',
      'FENCEGATE_LEASE_ID',
      'FENCEGATE_RESOURCE',
    ]);
  });

  it('holds the lease for as long as the command runs, longer than its time to live', async () => {
    const process = exec('touch running; read -r line; echo "$line"', '--ttl', '1s');
    await appeared('running');
    const until1 = performance.now() + 2_000;
    while (performance.now() < until1) expect((await lab.client.lock(resource)).holders).toHaveLength(1);
    process.child.stdin.end('what comes on standard input\n');
    expect(await process.ended()).toEqual({ code: 0, signal: null });
    expect(process.stdout).toBe('what comes on standard input\n');
  });

  it('says 128 + n for a command that a signal ended', async () => {
    expect(await exec('kill -9 $$').ended()).toEqual({ code: 137, signal: null });
    expect(await exec('kill -TERM $$').ended()).toEqual({ code: 143, signal: null });
  });

  it('says 127 for a command that is not there, 126 for one that cannot be run, and releases', async () => {
    writeFileSync(join(lab.directory, 'plain.txt'), 'no program');
    expect(await lab.cli.run('exec', '--lock', resource, '--', 'no-such-command')).toEqual({
      code: 127,
      stdout: '',
      stderr: 'fencegate: no-such-command: command not found\n',
    });
    expect((await lab.cli.run('exec', '--lock', resource, '--', './plain.txt')).code).toBe(126);
    expect(await isFree()).toBe(true);
  });

  it('runs the writes of the command, and of commands of ours in it, under its token', async () => {
    const process = exec('echo mine > mine.txt; node "$FENCEGATE" put mine.txt "$FENCEGATE_RESOURCE" --json');
    await process.ended();
    const { fencing_token: token } = JSON.parse(process.stdout) as { fencing_token: string };
    expect(token).toBe((await lab.client.lock(resource)).high_water_mark);
  });

  it('is re-entrant: inside itself it has the same lease, which only the outer one ends', async () => {
    const inner = `node "$FENCEGATE" exec --lock "$FENCEGATE_RESOURCE" -- sh -c 'echo $FENCEGATE_FENCING_TOKEN'`;
    const process = exec(`echo $FENCEGATE_FENCING_TOKEN; ${inner}; node "$FENCEGATE" lock show "$FENCEGATE_RESOURCE"`, '--wait', '0');
    await process.ended();
    const [outer, nested] = process.stdout.split('\n');
    expect(nested).toBe(outer);
    expect(process.stdout).toContain('held, exclusive');
  });

  it('lets readers in together with --shared', async () => {
    const first = exec('touch reading; read -r line', '--shared');
    await appeared('reading');
    expect(await exec('true', '--shared', '--wait', '0').ended()).toEqual({ code: 0, signal: null });
    first.child.stdin.end('\n');
    await first.ended();
  });

  it('passes SIGTERM on, and lets the command decide', async () => {
    const process = exec('trap "echo asked; exit 3" TERM; touch ready; while :; do sleep 0.05; done');
    await appeared('ready');
    process.signal('SIGTERM');
    expect(await process.ended()).toEqual({ code: 3, signal: null });
    expect(process.stdout).toBe('asked\n');
    expect(await isFree()).toBe(true);
  });
});

describe('fencegate exec that does not get the lock', () => {
  it('says 75 when the wait is over, and who holds it is not asked to run', async () => {
    const lease = await lab.client.lease(resource);
    const result = await lab.cli.run('exec', '--lock', resource, '--wait', '700ms', '--', 'touch', 'must-not-be');
    expect(result.code).toBe(75);
    expect(result.stderr).toMatch(/^fencegate: lock_not_acquired: .* Held by test since 20\S+Z\..*\nfencegate: next: .*\n$/);
    expect(existsSync(join(lab.directory, 'must-not-be'))).toBe(false);
    await lease.release();
  });

  it('waits in line, and runs when it is its turn', async () => {
    const lease = await lab.client.lease(resource);
    const process = exec('echo $FENCEGATE_FENCING_TOKEN', '--wait', '1m');
    await until(async () => ((await lab.client.lock(resource)).queue_length === 1 ? true : null));
    await lease.release();
    expect(await process.ended()).toEqual({ code: 0, signal: null });
    expect(Number(process.stdout)).toBeGreaterThan(Number(lease.token));
  });

  it('leaves the line at SIGINT', async () => {
    const lease = await lab.client.lease(resource);
    const process = exec('true', '--wait', '1m');
    await until(async () => ((await lab.client.lock(resource)).queue_length === 1 ? true : null));
    process.signal('SIGINT');
    expect(await process.ended()).toEqual({ code: 130, signal: null });
    expect((await lab.client.lock(resource)).queue_length).toBe(0);
    await lease.release();
  });

  it('says 69 when no gateway is there', async () => {
    const nobody = lab.cli.with({ FENCEGATE_URL: `http://127.0.0.1:${await freePort()}` });
    const result = await nobody.run('exec', '--lock', resource, '--', 'true');
    expect(result.code).toBe(69);
    expect(result.stderr).toMatch(/gateway_unreachable: .*ECONNREFUSED.*\n.*next: check that the gateway runs/);
  });

  it('says 64 for what cannot be meant', async () => {
    for (const argv of [
      ['exec', '--', 'true'],
      ['exec', '--lock', resource],
      ['exec', '--lock', resource, '--wait', '30', '--', 'true'],
      ['exec', '--lock', resource, '--ttl', '6s', '--grace', '3s', '--', 'true'],
      ['exec', '--lock', 'no-path', '--', 'true'],
      ['exec', '--lock', resource, '--ttl', '10ms', '--', 'true'],
      ['exec', '--lock', resource, '--gateway', 'nonsense', '--', 'true'],
    ]) {
      const { code, stderr } = await lab.cli.run(...argv);
      expect([argv, code]).toEqual([argv, 64]);
      expect(stderr).not.toBe('');
    }
  });

  it('says 77 without a right, and takes its bearer token from a file or the environment', async () => {
    const { directory: own, cli: there } = await ownGateway({ auth: principalsFile([{ name: 'robot', roles: ['reader', 'writer'] }]) });
    expect((await there.run('exec', '--lock', resource, '--', 'true')).code).toBe(77);
    expect((await there.with({ FENCEGATE_AUTH_TOKEN: bearerOf('robot') }).run('exec', '--lock', resource, '--', 'true')).code).toBe(0);
    writeFileSync(join(own, 'token'), `${bearerOf('robot')}\n`);
    expect((await there.run('exec', '--auth-token-file', 'token', '--lock', resource, '--', 'true')).code).toBe(0);
    const forbidden = await there
      .with({ FENCEGATE_AUTH_TOKEN: bearerOf('robot') })
      .run('lock', 'break', resource, '--lease', 'lr_of_somebody', '--reason', 'x');
    expect(forbidden.code).toBe(77);
  });
});

describe('R16: fencegate exec whose gateway disappears', () => {
  it('ends the command before the lease can end, also one that ignores SIGTERM, and what that started; says 70, and is not held up by who is gone', async () => {
    const own = await ownGateway();
    const run = (name: string, script: string, ...flags: readonly string[]) =>
      lab.cli.with({ FENCEGATE_URL: own.gateway.url }).start('exec', '--lock', `v/${name}`, '--ttl', TTL, ...flags, '--', 'sh', '-c', script);
    const beat = (name: string): string => `while :; do date +%s%3N >> ${name}; sleep 0.02; done`;
    const obedient = run('obedient', `trap "date +%s%3N > asked; exit 0" TERM; ${beat('obedient')}`);
    const stubborn = run('stubborn', `trap "" TERM; (${beat('grandchild')}) & ${beat('child')}`, '--grace', '700ms');
    const obedientEnded = obedient.ended().then((end) => ({ ...end, atMs: Date.now() }));
    await Promise.all(['obedient', 'child', 'grandchild'].map(appeared));
    await own.gateway.kill();
    const endMs = Date.now() + TTL_MS;
    const { atMs, ...end } = await obedientEnded;
    expect([end, await stubborn.ended()]).toEqual(new Array(2).fill({ code: 70, signal: null }));
    const [askedMs = 0] = times('asked');
    expect(askedMs).toBeLessThan(endMs);
    // Less than the time that a gateway which answers is given to hear of the end.
    expect(atMs - askedMs).toBeLessThan(900);
    expect(obedient.stderr).toMatch(/The lease is lost: expired, by the clock of this process.*SIGTERM, and SIGKILL after 500ms/);
    for (const name of ['child', 'grandchild']) {
      const last = times(name).at(-1) ?? 0;
      expect(last).toBeLessThan(endMs);
      expect(Date.now()).toBeGreaterThan(last);
    }
  });
});

describe('fencegate exec that loses its lease', () => {
  it('ends the command as soon as the lease is broken, long before it renews, and says 70, also to one that ends well', async () => {
    const process = exec('trap "exit 0" TERM; touch broken-ready; while :; do sleep 0.02; done', '--ttl', '1h');
    await appeared('broken-ready');
    await lab.client.breakLock(resource, { reason: 'a test' });
    expect(await process.ended()).toEqual({ code: 70, signal: null });
    expect(process.stderr).toContain('says the gateway');
  });

  it('ends the command before the grace of a break is over, and nobody else has the lock before it is gone', async () => {
    const script =
      'trap "date +%s%3N > grace-asked; sleep 0.6; date +%s%3N > grace-gone; exit 0" TERM; touch grace-ready; while :; do sleep 0.02; done';
    const process = exec(script, '--ttl', '6s', '--grace', '1500ms');
    await appeared('grace-ready');
    // Before the next heartbeat, and with the command still at work when the administrator asks.
    await lab.client.breakLock(resource, { reason: 'maintenance', graceMs: 4_000 });
    const next = lab.client.lease(resource).then((lease) => ({ lease, grantedMs: Date.now() }));
    expect(await process.ended()).toEqual({ code: 70, signal: null });
    expect(process.stderr).toMatch(/an administrator ends the lease.*\n(.*\n)?.*The lease is lost: broken, by the clock of this process/);
    const { lease, grantedMs } = await next;
    expect(times('grace-gone')[0]).toBeLessThanOrEqual(grantedMs);
    await lease.release();
  });

  it('ends the command before the longest hold is over, and says so', async () => {
    const process = exec('trap "exit 0" TERM; while :; do sleep 0.02; done', '--max-hold', '1500ms', '--ttl', '1h');
    expect(await process.ended()).toEqual({ code: 70, signal: null });
    expect(process.stderr).toMatch(/The lease is lost: max_hold, by the clock of this process.*SIGTERM, and SIGKILL after 250ms/);
  });

  it('ends the command when it wakes up after the lease could have ended', async () => {
    const process = exec('touch stop-ready; while :; do sleep 0.02; done', '--ttl', '1s');
    await appeared('stop-ready');
    process.signal('SIGSTOP');
    await until(async () => ((await isFree()) ? true : null));
    process.signal('SIGCONT');
    expect(await process.ended()).toEqual({ code: 70, signal: null });
  });

  it('refuses the late write of a command that goes on all the same', async () => {
    const script =
      'trap "touch late-told" TERM; touch late-ready; until [ -e late-told ] && [ -e late-go ]; do sleep 0.02; done; echo late | node "$FENCEGATE" put - "$FENCEGATE_RESOURCE"; echo $? > late-code';
    const process = exec(script, '--ttl', '30s', '--grace', '10s');
    await appeared('late-ready');
    await lab.client.breakLock(resource, { reason: 'a test' });
    await lab.client.put(resource, 'theirs', {});
    await lab.cli.run('exec', '--lock', resource, '--', 'touch', 'late-go');
    await process.ended();
    if (existsSync(join(lab.directory, 'late-code'))) expect(text('late-code')).toBe('65\n');
    expect(await (await lab.client.get(resource)).text()).toBe('theirs');
  });
});

describe('fencegate exec at a terminal', () => {
  const atTerminal = (script: string) => suite.atTerminal(resource, script);

  it('Ctrl-C reaches the command once, and ends it as it ends any other', async () => {
    const terminal = atTerminal('trap "echo int >> ints; sleep 0.3; exit 130" INT; touch tty-ready; while :; do sleep 0.02; done');
    await appeared('tty-ready');
    terminal.type('\u0003');
    expect((await terminal.ended).code).toBe(130);
    expect(text('ints')).toBe('int\n');
    expect(await isFree()).toBe(true);
  });

  it('Ctrl-C says 130 for a command that does nothing about it, and nothing is left of it', async () => {
    const terminal = atTerminal('echo $$ > tty-pid; exec sleep 1000');
    const pid = await suite.notedPid('tty-pid');
    terminal.type('\u0003');
    expect((await terminal.ended).code).toBe(130);
    await isGone(pid);
    expect(await isFree()).toBe(true);
  });

  it('what is typed comes to the command', async () => {
    const terminal = atTerminal('read -r line; echo "said $line"');
    terminal.type('hello\n');
    expect((await terminal.ended).output).toContain('said hello');
  });

  it('Ctrl-Z stops the command, too; it goes on with us', async () => {
    const terminal = atTerminal('echo $$ > stopped-pid; read -r line; echo "said $line"');
    const child = await suite.notedPid('stopped-pid');
    const parent = parentOf(child);
    terminal.type('\u001a');
    await Promise.all([isStopped(child), isStopped(parent)]);
    process.kill(parent, 'SIGCONT');
    terminal.type('again\n');
    expect((await terminal.ended).output).toContain('said again');
  });
});
