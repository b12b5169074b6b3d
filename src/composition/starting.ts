import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../config/config.ts';
import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { within } from '../domain/within.ts';
import { journalKnows, leasesComeBack, tokensAbove } from '../gateway/recover.ts';
import { startRecord } from '../gateway/start-record.ts';
import type { VolumeSet } from '../storage/volume-set.ts';
import type { GatewayParts } from './gateway-parts.ts';
import { overdue } from './stopping.ts';

const WAITS = "It waits for the gateway's first session with the ZooKeeper ensemble; the log says why there is none yet.";

/**
 * Nobody is served before recovery is done and on record; where the coordinator does not answer, and `onWaiting` wants to hear of it, all that
 * needs no volume is served meanwhile.
 */
export async function startGateway(parts: GatewayParts, failed: Promise<Error>, onWaiting: ((url: string) => void) | null): Promise<string> {
  const { clock, coordination, volumes, stopping } = parts;
  const begun = Promise.race([coordination.start({ waits: onWaiting !== null }), failed.then((error) => Promise.reject(error))]);
  let url: string | null = null;
  if (onWaiting !== null && (await within(clock, LIMITS.coordinatorAwaitedMs, begun)) === 'late') {
    // That it fails meanwhile is heard below.
    begun.catch(() => undefined);
    url = await servedMeanwhile(parts);
    onWaiting(url);
  }
  await begun;
  if (stopping.isDraining()) throw overdue();
  coordination.onUntitled((volume) => volumes.renew(volume));
  await volumes.start();
  assertOwnsSomething(volumes);
  if (url !== null) return url;
  await recoverLocks(parts);
  return open(parts);
}

/** Nothing comes back of the leases of before: they are the coordinator's. */
async function servedMeanwhile(parts: GatewayParts): Promise<string> {
  parts.volumes.waitFor(WAITS);
  await recoverLocks(parts);
  return open(parts);
}

/** And the record of the start, which no answer precedes. */
async function recoverLocks({ config, clock, journal, start, tookOver, volumes, locks }: GatewayParts): Promise<void> {
  const all = volumes.all();
  const known = journalKnows(
    start,
    config.volumes.map(({ name }) => name),
  );
  const ceilings = all.map(({ ceilingFound }) => ceilingFound);
  const comeBack = leasesComeBack(
    start,
    all.map(({ verdict }) => verdict),
  );
  await locks.restore(start, { above: tokensAbove(known, ceilings), comeBack });
  await journal.commit([{ op: 'audit', record: startRecord(clock, tookOver ? 'take_over' : 'start') }]);
}

async function open({ config, app, grpc }: GatewayParts): Promise<string> {
  await grpc?.start();
  return listen(app, config);
}

async function listen(app: FastifyInstance, { host, port, tls }: Config): Promise<string> {
  await app.listen({ host, port });
  const { address, family, port: bound } = app.server.address() as AddressInfo;
  return `${tls === null ? 'http' : 'https'}://${family === 'IPv6' ? `[${address}]` : address}:${bound}`;
}

/** When ownership leaves no volume open, serving would only confuse: the process ends with one line. */
function assertOwnsSomething(volumes: VolumeSet): void {
  const foreign = volumes.all().find(({ ownedByAnother }) => ownedByAnother);
  if (foreign === undefined || volumes.all().some((volume) => !volume.ownedByAnother)) return;
  throw refuse('volume_unavailable', `No volume belongs to this gateway. ${foreign.name}: ${foreign.state().reason ?? ''}`);
}
