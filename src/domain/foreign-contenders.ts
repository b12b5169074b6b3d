import type { ProblemMembers } from './errors.ts';
import { LIMITS } from './limits.ts';

/** Contenders of other lock recipes at the node of a resource. They have no lease, so only their names can tell who is in the way. */
export interface ForeignContenders {
  /** Of the resource. */
  readonly node: string;
  /** Of its children, in the order in which they came. */
  readonly names: readonly string[];
  /** Nobody of ours holds the resource. */
  readonly hold: boolean;
}

export const NO_FOREIGN_CONTENDERS: ForeignContenders = { node: '', names: [], hold: false };

/** For people, where it is they for whom somebody waits; `null` elsewhere. */
export function foreignDetail({ node, names: [first, ...others], hold }: ForeignContenders): string | null {
  if (!hold || first === undefined) return null;
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  return `Another program, with a lock recipe of its own, holds the resource or is before this request: ${node}/${first}${more}, in ZooKeeper.`;
}

export function foreignMembers({ names }: ForeignContenders): ProblemMembers {
  return { foreign_contenders: names.slice(0, LIMITS.foreignNamedMax) };
}
