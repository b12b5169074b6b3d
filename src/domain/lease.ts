import type { FencingToken } from './fencing-token.ts';
import type { ForeignContenders } from './foreign-contenders.ts';
import type { JournalOp } from './journal.ts';
import type { Caller } from './principal.ts';
import type { Resource } from './resource.ts';

export type LeaseMode = 'exclusive' | 'shared';
export type LeaseState = 'waiting' | 'held' | 'ending' | 'released' | 'expired' | 'broken' | 'lost' | 'cancelled';
export type LeaseEndState = Exclude<LeaseState, 'waiting' | 'held' | 'ending'>;

/** A live lease as the write protocol sees it. */
export interface HeldLease {
  readonly leaseRef: string;
  readonly resources: readonly Resource[];
  readonly mode: LeaseMode;
  readonly token: FencingToken;
  readonly principal: string;
  readonly clientId: string | null;
}

/** Keeps a lease from ending while a commit section runs (I1): an end decided meanwhile takes effect when `leave` is called. */
export interface Pin {
  readonly lease: HeldLease;
  leave(): void;
}

/** What is known about one resource and a presented token, for the verdict of `http-api.md`. */
export interface TokenFacts {
  readonly mark: FencingToken | null;
  /** The live lease on this resource that carries the presented token. */
  readonly live: HeldLease | null;
  /** Whose lease stands at the mark, live or ended. */
  readonly atMark: {
    readonly leaseRef: string;
    readonly principal: string | null;
    readonly ended: { readonly reason: string; readonly endedAt: string | null } | null;
  } | null;
  /** The resource was ever leased by name (policy `once_leased`). */
  readonly everNamed: boolean;
}

export interface ImplicitLeaseRequest {
  readonly resources: readonly Resource[];
  readonly caller: Caller;
  /** How long to stand in line, ms; 0 = try. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** A lease for one token-less write. Its mark is not durable yet: `grantOps` go into the unit of the intent. */
export interface ImplicitLease {
  readonly lease: HeldLease;
  readonly grantOps: readonly JournalOp[];
  release(): void;
}

/** The face that locks show to the write protocol. */
export interface WriteLeases {
  /** Facts for the verdict at admission; may read the journal. `presented` null: only mark and holder are wanted. */
  facts(resource: Resource, presented: FencingToken | null): Promise<TokenFacts>;
  /** For the verdict on a token that `pin` refused: the same facts, with the mark that it met, which the journal may not have yet. */
  factsMet(resource: Resource, presented: FencingToken): Promise<TokenFacts>;
  /** The commit section's own check, synchronous and authoritative: a live exclusive lease on `resource` whose token is the mark. Pins it, or throws 412, which the write protocol judges again (what it may show is known to whoever knows the caller). */
  pin(resource: Resource, token: FencingToken): Pin;
  /**
   * A refusal of `token` as that of an ended or shared lease, or as stale, may be told once this resolves, and says whether facts moved
   * meanwhile. Rejects with `journal_unavailable` when the journal does not have what it is about, `volume_unavailable` when a commit section
   * under the lease does not end, or the signal's reason: then nothing is known for good yet.
   */
  refusalTold(resource: Resource, token: FencingToken, signal: AbortSignal): Promise<boolean>;
  /**
   * Waits while the coordinator is not in contact, at most `waitMs`; at once where a write under `token` may be finished without.
   * Rejects with `coordinator_suspended`, `coordinator_unavailable`, or the signal's reason.
   */
  inContact(resource: Resource, token: FencingToken | null, waitMs: number, signal: AbortSignal): Promise<void>;
  /** Stands in line like everybody else. Rejects with `resource_locked` (holder's client id, queue length), `queue_full`, `coordinator_*` (also of a wait that runs out while nobody knows who holds), or the signal's reason. */
  acquireImplicit(request: ImplicitLeaseRequest): Promise<ImplicitLease>;
  /** Somebody holds the resource now (for `X-Lock-Wait-Ms: 0` before the body); `null` when free, and when nobody knows for lack of contact. */
  holder(resource: Resource): { readonly clientId: string | null; readonly queueLength: number; readonly foreign: ForeignContenders } | null;
  /** `X-Lease-Keepalive`: renews while bytes flow; false when the lease has ended. */
  keepAlive(resource: Resource, token: FencingToken): boolean;
  /** The lease on the resource that has or had this token, as far as memory knows: for the record of a refusal. */
  leaseRefOf(resource: Resource, token: FencingToken): string | null;
  /** True when `leaseId` is the secret id of the lease known by `leaseRef`. */
  isLeaseId(leaseId: string, leaseRef: string): boolean;
  /** Policy `signed`: reads and verifies `<decimal>.<lease ref>.<mode>.<key id>.<mac>`. `invalid`: not of that form; `forged`: no key of ours made it. */
  readSigned(text: string, resource: Resource, principal: string): { readonly token: FencingToken } | 'invalid' | 'forged';
}
