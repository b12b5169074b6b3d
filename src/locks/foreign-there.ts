import { type ForeignContenders, NO_FOREIGN_CONTENDERS } from '../domain/foreign-contenders.ts';
import type { Resource } from '../domain/resource.ts';
import type { Coordinator, ResourceLook } from './coordinator.ts';
import type { Lease } from './lease-record.ts';

type Looks = Pick<Coordinator<Lease>, 'look' | 'resourcePath'>;

/** What the coordinator last saw of other recipes at a resource. */
export function foreignThere(coordinator: Looks, look: ResourceLook<Lease> | null): ForeignContenders {
  if (look === null) return NO_FOREIGN_CONTENDERS;
  return { node: coordinator.resourcePath(look.resource), names: look.foreign, hold: look.holders.length === 0 };
}

/** The same where a lease waits: at the first of its resources that it does not hold. */
export function foreignBefore(coordinator: Looks, lease: Lease): ForeignContenders {
  const looks = lease.resources.map(({ key }) => coordinator.look(key));
  return foreignThere(coordinator, looks.find((look) => look?.holders.includes(lease) !== true) ?? null);
}

/** The same by a look of its own, at a resource that nobody of ours holds. Rejects as `refresh` does. */
export async function foreignAt(coordinator: Pick<Coordinator<Lease>, 'refresh' | 'resourcePath'>, resource: Resource): Promise<ForeignContenders> {
  return { node: coordinator.resourcePath(resource), names: await coordinator.refresh(resource), hold: true };
}
