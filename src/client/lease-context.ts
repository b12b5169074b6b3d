import { AsyncLocalStorage } from 'node:async_hooks';
import type { LeaseHandle } from './lease-handle.ts';

/** The leases that the code now running was started under: what makes `withLease` re-entrant (R4) and writes find their token. */
export class LeaseContext {
  readonly #storage = new AsyncLocalStorage<readonly LeaseHandle[]>();

  run<T>(lease: LeaseHandle, work: () => T): T {
    return this.#storage.run([lease, ...(this.#storage.getStore() ?? [])], work);
  }

  /** The innermost live lease over all of `resources`. */
  covering(resources: readonly string[]): LeaseHandle | null {
    return this.#storage.getStore()?.find((lease) => lease.state === 'held' && resources.every((resource) => lease.covers(resource))) ?? null;
  }

  /** The innermost live lease over any of `resources`. */
  touching(resources: readonly string[]): LeaseHandle | null {
    return this.#storage.getStore()?.find((lease) => lease.state === 'held' && resources.some((resource) => lease.covers(resource))) ?? null;
  }

  /** The innermost lease over `resource`, whatever has become of it. */
  over(resource: string): LeaseHandle | null {
    return this.#storage.getStore()?.find((lease) => lease.covers(resource)) ?? null;
  }
}
