import type { Lease } from './contract/answers.ts';

/** Its time to live, ms. Not known, and 0, only of a wait that a restart of the gateway ended: that one has no time left. */
export function ttlOf({ ttl_ms: ttlMs }: Pick<Lease, 'ttl_ms'>): number {
  return ttlMs ?? 0;
}
