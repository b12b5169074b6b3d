/** A process that holds an ephemeral node over the client of the product, so that a test can stop and kill it. Started by `fork`. */
import { linuxTime, SystemClock } from '../../src/observability/system-clock.ts';
import { Ensemble } from '../../src/zookeeper/connect-ensemble.ts';

export interface HolderReport {
  readonly supervisorPid: number;
  readonly childPid: number;
  readonly sessionId: string | null;
}

const [port = '0', sessionMs = '0', path = '/'] = process.argv.slice(2);
const ensemble = await Ensemble.start({
  servers: [{ host: '127.0.0.1', port: Number(port) }],
  chroot: '',
  sessionMs: Number(sessionMs),
  auth: null,
  clock: new SystemClock(linuxTime()),
  log: () => undefined,
});
const client = ensemble.open();
client.onState((state) => {
  process.send?.(state);
  if (state !== 'connected') return;
  void client.create(path, Buffer.alloc(0), 'ephemeral').then(
    () => {
      const { supervisorPid, childPid } = ensemble;
      process.send?.({ supervisorPid, childPid, sessionId: client.session?.id ?? null } satisfies HolderReport);
    },
    () => undefined,
  );
});
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
