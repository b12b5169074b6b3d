import { type ClientEvent, FencegateClient, type LeaseHandle } from '../../src/client/index.ts';
import { FakeClock } from './fake-clock.ts';
import { FakeFetch, leaseAnswer, sessionAnswer } from './fake-fetch.ts';

/** Of the lease that the lab takes. */
export const TTL_MS = 10_000;
export const MARGIN_MS = 1_000;

/** A client whose gateway and time are the test. */
export interface ClientLab {
  readonly clock: FakeClock;
  readonly wire: FakeFetch;
  readonly client: FencegateClient;
  readonly events: ClientEvent[];
}

/** Without `random` jitter is off: a heartbeat is due every third of the time to live. */
export function clientLab(random: () => number = () => 0): ClientLab {
  const clock = new FakeClock();
  const wire = new FakeFetch();
  const events: ClientEvent[] = [];
  const client = new FencegateClient({ fetch: wire.fetch, clock, random, onEvent: (event) => events.push(event) });
  return { clock, wire, client, events };
}

/** A lease on `v/a` with the session that carries it. */
export async function held({ client, wire }: Pick<ClientLab, 'client' | 'wire'>, options: object = {}, answer: object = {}): Promise<LeaseHandle> {
  const lease = client.lease('v/a', { ttlMs: TTL_MS, ...options });
  await (await wire.next('POST /v1/sessions')).answer(201, sessionAnswer());
  await (await wire.next('POST /v1/leases')).answer(201, leaseAnswer(answer));
  return lease;
}

export const heartbeat = { expires_in_ms: 300_000, lost: [] };
