import type { FastifyInstance } from 'fastify';
import type { Gateway } from '../cli/serve.ts';
import { LIMITS } from '../domain/limits.ts';
import { closeApp, OpenRequests } from '../http/draining.ts';
import type { EndsNotStored } from '../locks/ends-at-stop.ts';
import type { GatewayParts } from './gateway-parts.ts';
import { startGateway } from './starting.ts';
import { overdue } from './stopping.ts';

/** In which order a gateway starts and stops. */
export function lifecycle(parts: GatewayParts): Gateway {
  const openRequests = new OpenRequests(parts.app);
  let over: Promise<void> | null = null;
  const failed = Promise.race([
    parts.coordination.failed,
    new Promise<Error>((resolve) => parts.journal.onSuperseded(() => resolve(new Error('another process took the data directory over')))),
  ]);
  const gateway: Gateway = {
    failed,
    async start(onWaiting) {
      try {
        return { url: await startGateway(parts, failed, onWaiting ?? null) };
      } catch (error) {
        await gateway.stop();
        throw error;
      }
    },
    // A start that fails while somebody stops it stops once.
    stop: () => (over ??= stop(parts, openRequests)),
  };
  return gateway;
}

async function stop(
  { config, clock, volumes, locks, settleLoop, app, grpc, stopping, coordination, close }: GatewayParts,
  open: OpenRequests,
): Promise<void> {
  stopping.begin();
  const late = clock.after(config.drainMs, () => stopping.end(overdue()));
  await locks.endAll('shutdown', null);
  await Promise.all([open.idle(stopping.deadline), grpc?.idle(stopping.deadline)]);
  late.cancel();
  await locks.endAll('stop', null);
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
