import type { LockEvent } from '../../src/domain/lock-events.ts';
import type { Locks } from '../../src/locks/create-lock-service.ts';
import { settle } from './fake-clock.ts';
import { anybody, never, resource } from './lock-lab.ts';

/** Everything that a watch of resource `a` hears from now on. */
export async function heard({ locks }: { readonly locks: Pick<Locks, 'events'> }): Promise<LockEvent[]> {
  const events: LockEvent[] = [];
  const stream = await locks.events.watch(anybody, { of: 'resource', resource: resource('a') }, null, never);
  void (async () => {
    for await (const event of stream) if (event.type !== 'reset') events.push(event);
  })();
  await settle();
  return events;
}
