import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Gateway } from '../cli/serve.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import { GatewayError, refuse } from '../domain/errors.ts';
import type { Journal, JournalStart } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import { journalKnows, leasesComeBack, tokensAbove } from '../gateway/recover.ts';
import type { SettleLoop } from '../gateway/settle-loop.ts';
import { startRecord } from '../gateway/start-record.ts';
import type { GrpcServer } from '../grpc/server.ts';
import { closeApp, OpenRequests } from '../http/draining.ts';
import type { Locks } from '../locks/create-lock-service.ts';
import type { EndsNotStored } from '../locks/ends-at-stop.ts';
import type { VolumeSet } from '../storage/volume-set.ts';
import type { ConfiguredCoordination } from './coordination.ts';
import type { Stopping } from './stopping.ts';

export interface LifecycleParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly start: JournalStart;
  readonly tookOver: boolean;
  readonly volumes: VolumeSet;
  readonly locks: Locks;
  readonly settleLoop: SettleLoop;
  readonly app: FastifyInstance;
  /** `null`: off. */
  readonly grpc: GrpcServer | null;
  readonly stopping: Stopping;
  readonly coordination: ConfiguredCoordination;
  /** Last: the journal, the clock. */
  readonly close: () => Promise<void>;
}

/** In which order a gateway starts (nobody is served before recovery is done and on record) and stops. */
export function lifecycle(parts: LifecycleParts): Gateway {
  const { journal, app } = parts;
  const openRequests = new OpenRequests(app);
  const gateway: Gateway = {
    failed: Promise.race([
      parts.coordination.failed,
      new Promise<Error>((resolve) => journal.onSuperseded(() => resolve(new Error('another process took the data directory over')))),
    ]),
    async start() {
      try {
        await recover(parts);
        await parts.grpc?.start();
        return { url: await listen(app, parts.config) };
      } catch (error) {
        await gateway.stop();
        throw error;
      }
    },
    stop: () => stop(parts, openRequests),
  };
  return gateway;
}

async function recover({ config, clock, journal, start, tookOver, volumes, locks, coordination }: LifecycleParts): Promise<void> {
  await coordination.start();
  coordination.onUntitled((volume) => volumes.renew(volume));
  await volumes.start();
  assertOwnsSomething(volumes);
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

async function listen(app: FastifyInstance, { host, port, tls }: Config): Promise<string> {
  await app.listen({ host, port });
  const { address, family, port: bound } = app.server.address() as AddressInfo;
  return `${tls === null ? 'http' : 'https'}://${family === 'IPv6' ? `[${address}]` : address}:${bound}`;
}

async function stop(
  { config, clock, volumes, locks, settleLoop, app, grpc, stopping, coordination, close }: LifecycleParts,
  open: OpenRequests,
): Promise<void> {
  stopping.begin();
  const late = clock.after(config.drainMs, () => stopping.end(overdue()));
  await locks.endAll('shutdown', null);
  await Promise.all([open.idle(stopping.deadline), grpc?.idle(stopping.deadline)]);
  late.cancel();
  // Streams and whatever else is still open ends here.
  stopping.end(overdue());
  await Promise.all([closeApp(app, clock), grpc?.stop()]);
  tellNotStored(app.log, await locks.endsAtStop());
  locks.stop();
  await coordination.stop();
  settleLoop.stop();
  await volumes.stop();
  await close();
}

function overdue(): GatewayError {
  return new GatewayError('draining', { detail: 'The gateway is shutting down.', retryAfterMs: 5_000 });
}

/** A start may bring them back, though somebody was told that the end is in effect. */
function tellNotStored(log: FastifyInstance['log'], { leases, sessions }: EndsNotStored): void {
  if (leases.length === 0 && sessions.length === 0) return;
  log.error(
    {
      lease_refs: leases.slice(0, LIMITS.endsNamedMax),
      leases: leases.length,
      session_refs: sessions.slice(0, LIMITS.endsNamedMax),
      sessions: sessions.length,
    },
    'the journal did not take the ends of these leases and sessions: a start may bring them back',
  );
}

/** When ownership leaves no volume open, serving would only confuse: the process ends with one line. */
function assertOwnsSomething(volumes: VolumeSet): void {
  const foreign = volumes.all().find(({ ownedByAnother }) => ownedByAnother);
  if (foreign === undefined || volumes.all().some((volume) => !volume.ownedByAnother)) return;
  throw refuse('volume_unavailable', `No volume belongs to this gateway. ${foreign.name}: ${foreign.state().reason ?? ''}`);
}
