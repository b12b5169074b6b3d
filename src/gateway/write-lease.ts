/** Step 5: the right to write, for each resource of an operation: the presented token, or a lease for this one request. */
import type { FencingToken } from '../domain/fencing-token.ts';
import type { JournalOp } from '../domain/journal.ts';
import type { ImplicitLease } from '../domain/lease.ts';
import { inCanonicalOrder, type Resource } from '../domain/resource.ts';
import type { WriteDeps } from './deps.ts';
import type { Operation } from './operation.ts';

export interface Grant {
  readonly resource: Resource;
  readonly token: FencingToken;
  /** The client's own token, and not that of the lease for this one request. */
  readonly presented: boolean;
}

export interface WriteRight {
  /** In canonical order, one for each resource of the operation. */
  readonly grants: readonly Grant[];
  tokenOf(resource: Resource): FencingToken;
  /** Go into the unit of the intent: the marks of implicit grants (I2: nobody was told of them yet). */
  readonly ops: readonly JournalOp[];
  /** Ends the implicit lease; a lease of the client's own goes on. */
  release(): void;
}

/** Stands in line for the resources that came without a token, at most the request's wait limit. */
export async function writeRight(
  deps: WriteDeps,
  operation: Operation,
  wanted: readonly { readonly resource: Resource; readonly token: FencingToken | null }[],
): Promise<WriteRight> {
  const { caller, waitMs, signal } = operation.envelope;
  const tokenless = wanted.filter((w) => w.token === null).map((w) => w.resource);
  let implicit: ImplicitLease | null = null;
  for (const { resource, token } of wanted) await deps.leases.inContact(resource, token, waitMs, signal);
  if (tokenless.length > 0) {
    implicit = await deps.leases.acquireImplicit({ resources: inCanonicalOrder(tokenless), caller, waitMs, signal });
    for (const resource of tokenless) operation.writesUnder(resource, implicit.lease.leaseRef);
  }
  await operation.reached('5.lease');
  const grants = new Map<string, Grant>();
  for (const { resource, token } of wanted) {
    const granted = token ?? implicit?.lease.token;
    if (granted !== undefined) grants.set(resource.key, { resource, token: granted, presented: token !== null });
  }
  const grantOf = (resource: Resource): Grant => {
    const grant = grants.get(resource.key);
    if (grant === undefined) throw new Error(`no grant covers ${resource.name}`);
    return grant;
  };
  return {
    grants: inCanonicalOrder(wanted.map((w) => w.resource)).map(grantOf),
    tokenOf: (resource) => grantOf(resource).token,
    ops: implicit?.grantOps ?? [],
    release: () => implicit?.release(),
  };
}
