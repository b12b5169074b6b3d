import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { CLIENT_LIMITS } from '../../src/client/client-limits.ts';
import { CommandLine } from '../support/command-line.ts';
import { behindLink } from '../support/shared-gateway.ts';
import { until } from '../support/until.ts';
import { observer } from '../support/zookeeper-client.ts';
import { TestEnsemble } from '../support/zookeeper-ensemble.ts';

/** A gateway over ZooKeeper promises a lease for two thirds of its own session at most, whatever time to live was asked for. */

let zookeeper: TestEnsemble;
beforeAll(async () => {
  zookeeper = await TestEnsemble.start();
});
afterAll(() => zookeeper.stop());

const port = (): number => zookeeper.servers[0]?.port ?? 0;
/** Longer than what is promised at a time. */
const COMMAND_S = 8;

describe('a command under a lease of ZooKeeper', () => {
  it('runs for as long as it takes when nothing fails, with the times that exec has of itself', async () => {
    const { gateway } = await behindLink(port(), '/whole', onTestFinished);
    const cli = new CommandLine(gateway.url, gateway.process.directory);
    expect(await cli.run('exec', '--lock', 'v/job', '--', 'sh', '-c', `sleep ${COMMAND_S}; echo done`)).toMatchObject({
      code: 0,
      stdout: 'done\n',
      stderr: '',
    });
  });

  it('R16: is gone before somebody else can hold, when the gateway loses the ensemble: also one that ignores SIGTERM, whose lease was waited for', async () => {
    const { link, gateway, root } = await behindLink(port(), '/cut', onTestFinished);
    const { directory } = gateway.process;
    const ensemble = await observer(zookeeper.addresses, onTestFinished);
    const cli = new CommandLine(gateway.url, directory);
    const pids = join(directory, 'pid');
    const before = await gateway.acquire('v/job');
    const exec = cli.start(
      'exec',
      '--lock',
      'v/job',
      '--grace',
      '10s',
      '--ttl',
      '2m',
      '--',
      'sh',
      '-c',
      `trap '' TERM; echo $$ > ${pids}; while :; do sleep 0.1; done`,
    );
    // Beyond the short first request, which would be answered with the grant.
    await until(async () => {
      const [waiter] = (await gateway.lock('v/job')).waiters;
      return waiter !== undefined && Date.now() - Date.parse(String(waiter['since'])) > 4 * CLIENT_LIMITS.firstWaitMs ? true : null;
    });
    await gateway.release(before);
    await until(async () => (existsSync(pids) && readFileSync(pids, 'utf8').endsWith('\n') ? true : null));
    link.silence();
    expect(await exec.ended()).toMatchObject({ code: 70 });
    expect(existsSync(`/proc/${readFileSync(pids, 'utf8').trim()}`)).toBe(false);
    // The session is still there at the servers: nobody else was let in.
    const node = `${root}/locks/v/job`;
    await ensemble.sync(node);
    expect((await ensemble.children(node)).names).toHaveLength(1);
  });
});
