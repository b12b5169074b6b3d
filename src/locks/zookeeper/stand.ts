import type { Clock, Random } from '../../domain/clock.ts';
import type { GatewayError } from '../../domain/errors.ts';
import type { LeaseMode } from '../../domain/lease.ts';
import type { Claim } from '../coordinator.ts';
import type { Contender, ResourceEntry } from '../embedded/resource-entry.ts';
import type { Child } from './lock-node.ts';
import type { NodeLine } from './node-line.ts';
import type { Titles } from './place.ts';
import type { ZkClient } from './zk-client.ts';

/** One claim of ours at one resource's node. */
export interface Stand<C extends Claim> {
  readonly claim: C;
  readonly contender: Contender<C>;
  readonly mode: LeaseMode;
  phase: 'joining' | 'waiting' | 'holding' | 'leaving' | 'gone';
  guid: string;
  child: Child | null;
  /** Our own changes of the child's data. */
  childVersion: number;
  /** The reply to its `create` was lost: it may be there. */
  doubtful: boolean;
  holdBackMs: number;
  announced: boolean;
  /** The node may have an entry of it that nobody had decided on when it was sent. */
  ahead: boolean;
  /** Its entry may have gone, or become weaker, and whoever watches its child has not been told. */
  untold: boolean;
}

export interface NodeLineHost<C extends Claim> {
  readonly clock: Clock;
  readonly random: Random;
  readonly client: ZkClient;
  /** The session is over: nothing more is sent. */
  over(): boolean;
  /** Why nobody can say anything of a lock at the moment. */
  refusal(): GatewayError | null;
  /** In contact, the volume is ours, and no grace period of a break: somebody may be let in. */
  mayGrant(entry: ResourceEntry<C>): boolean;
  readonly titles: Titles;
  /** The node has the grant and the child is still there. */
  took(stand: Stand<C>, mzxid: bigint): void;
  /** The node has it as exclusive now. */
  upgraded(line: NodeLine<C>, stand: Stand<C>, mzxid: bigint): void;
  waits(stand: Stand<C>): void;
  lapsed(stand: Stand<C>): void;
  /** Nobody can be let in, and it is known why. */
  refused(stand: Stand<C>, refusal: GatewayError): void;
  /** Somebody deleted the child of a holder of ours. */
  deleted(stand: Stand<C>): void;
  idle(line: NodeLine<C>): void;
}

export function newStand<C extends Claim>(claim: C, contender: Contender<C>, random: Random): Stand<C> {
  const nothing = { child: null, childVersion: 0, doubtful: false, holdBackMs: 0, announced: false, ahead: false, untold: false };
  return { claim, contender, mode: claim.mode, phase: 'joining', guid: guidFrom(random), ...nothing };
}

/** Its child is gone: the end of the line, under another name. */
export function standAnew<C extends Claim>(stand: Stand<C>, random: Random): void {
  stand.phase = 'joining';
  stand.guid = guidFrom(random);
  stand.child = null;
  stand.childVersion = 0;
}

function guidFrom(random: Random): string {
  return Buffer.from(random.bytes(16)).toString('hex');
}
