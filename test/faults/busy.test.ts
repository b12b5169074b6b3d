import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BusyClients } from '../support/busy-clients.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { get } from '../support/http-client.ts';
import { cannotUnshare, describeWhere } from '../support/needs.ts';
import { stoppedAndTakenOver } from '../support/stopped-and-taken-over.ts';
import { TIER } from '../support/tier.ts';
import { until } from '../support/until.ts';

/** Faults at instants that nobody chose: between two system calls, inside of one, while many writes share a commit. */

const CLIENTS = 8;
/** Answers after which the fault comes, and then a little later. */
const ANSWERS_BEFORE = 40;
const LATER_MS_MAX = 30;
/** A round is two starts and their checks. */
const ROUNDS_MS_MAX = 60_000 + TIER.killRounds * 20_000;
const APART = { takeoverAfterMs: 1_000, ownPidNamespace: true };

async function busyDirectory(): Promise<string> {
  const directory = await newDirectory();
  onTestFinished(() => removeDirectory(directory));
  return directory;
}

async function busyUntilFault(clients: BusyClients, gateway: GatewayProcess): Promise<void> {
  const enough = clients.answers + ANSWERS_BEFORE;
  clients.start(gateway.url);
  await until(() => (clients.answers >= enough ? true : null));
  await pause(Math.random() * LATER_MS_MAX);
}

describe('a busy gateway, at an instant that nobody chose', () => {
  it(
    `is killed ${TIER.killRounds} times: every answered write is there, every other is whole or absent`,
    async () => {
      const directory = await busyDirectory();
      const clients = new BusyClients(directory, CLIENTS);
      let gateway = await GatewayProcess.start(directory);
      for (let round = 0; round < TIER.killRounds; round += 1) {
        await busyUntilFault(clients, gateway);
        await gateway.kill();
        await clients.stop();
        gateway = await GatewayProcess.start(directory);
        expect(await clients.check(gateway.url)).toEqual([]);
        expect((await get(gateway.url, '/v1/audit/verify')).json).toMatchObject({ valid: true });
      }
    },
    ROUNDS_MS_MAX,
  );

  it('is asked to end: what it has taken in is finished and answered, nothing is left over', async () => {
    const directory = await busyDirectory();
    const clients = new BusyClients(directory, CLIENTS);
    const gateway = await GatewayProcess.start(directory);
    await busyUntilFault(clients, gateway);
    expect((await gateway.stop()).code).toBe(0);
    await clients.stop();
    const again = await GatewayProcess.start(directory);
    expect(await clients.check(again.url)).toEqual([]);
    expect((await get(again.url, '/v1/audit?action=take_over')).json).toMatchObject({ records: [] });
  });
});

describeWhere(cannotUnshare, 'a busy gateway that cannot be ended', () => {
  it(
    `is stopped, taken over and woken ${TIER.killRounds} times: nothing it does late is seen`,
    async () => {
      const directory = await busyDirectory();
      const clients = new BusyClients(directory, CLIENTS);
      let gateway = await GatewayProcess.start(directory, APART);
      for (let round = 0; round < TIER.killRounds; round += 1) {
        await busyUntilFault(clients, gateway);
        const successor = await stoppedAndTakenOver(gateway, () => GatewayProcess.spawn(directory, APART));
        gateway.signal('SIGCONT');
        await gateway.ended();
        await clients.stop();
        expect(await clients.check(successor.url)).toEqual([]);
        await busyUntilFault(clients, successor);
        await clients.stop();
        expect(await clients.check(successor.url)).toEqual([]);
        expect((await get(successor.url, '/v1/audit/verify')).json).toMatchObject({ valid: true });
        gateway = successor;
      }
    },
    ROUNDS_MS_MAX,
  );
});
