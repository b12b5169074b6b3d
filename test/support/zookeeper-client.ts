import { onTestFinished } from 'vitest';
import type { ZkClient, ZkSessionState } from '../../src/locks/zookeeper/zk-client.ts';
import { linuxTime, SystemClock } from '../../src/observability/system-clock.ts';
import { Ensemble, type EnsembleSettings } from '../../src/zookeeper/connect-ensemble.ts';
import type { WhenFinished } from './gateway-process.ts';

/** Of clients that are observed: as short as a busy machine can keep. */
export const SESSION_MS = 4_000;
/** Long enough that nothing that is done to a gateway ends it. */
const OBSERVER_SESSION_MS = 30_000;

/** The adapter over a real ensemble; ends with the test, of several that run at once with the one whose `whenFinished` it is. */
export async function openEnsemble(
  settings: Partial<EnsembleSettings> & Pick<EnsembleSettings, 'servers'>,
  whenFinished: WhenFinished = onTestFinished,
): Promise<Ensemble> {
  const time = linuxTime();
  const clock = new SystemClock(time);
  const ensemble = await Ensemble.start({ chroot: '', sessionMs: SESSION_MS, auth: null, clock, log: () => undefined, ...settings });
  whenFinished(async () => {
    await ensemble.stop();
    clock.stop();
    time.close();
  });
  return ensemble;
}

/** Resolves when the client is, or comes to be, in `state`. */
export function inState(client: ZkClient, state: ZkSessionState): Promise<void> {
  return new Promise((resolve) => {
    if (client.state === state) resolve();
    client.onState((now) => {
      if (now === state) resolve();
    });
  });
}

/** Resolves when the client comes to be in `state` the next time. */
export function nextState(client: ZkClient, state: ZkSessionState): Promise<void> {
  return new Promise((resolve) =>
    client.onState((now) => {
      if (now === state) resolve();
    }),
  );
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** A client of one's own beside the gateway's, connected. */
export async function observer(servers: EnsembleSettings['servers'], whenFinished: WhenFinished = onTestFinished): Promise<ZkClient> {
  const client = (await openEnsemble({ servers, sessionMs: OBSERVER_SESSION_MS }, whenFinished)).open();
  await inState(client, 'connected');
  return client;
}
