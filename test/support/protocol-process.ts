import type { LeaseMode } from '../../src/domain/lease.ts';
import { FREE, type NextState, type NodeState } from '../../src/locks/zookeeper/resource-node.ts';

export interface Contending {
  readonly mode: LeaseMode;
  readonly priority: number;
  /** Sends its grant with its contender, for a node that is as it knows it, and the end of its child with that of its hold. */
  readonly ahead?: boolean;
}

export interface WorldOptions {
  readonly contenders: readonly Contending[];
  /** Lost replies (also those of a release), expired sessions and deletes by a third party, altogether. */
  readonly faultsMax: number;
  /** `children` before `get`: the order that the recipe forbids. */
  readonly readsSwapped?: boolean;
}

export type Phase =
  | 'guess'
  | 'create'
  | 'find'
  | 'look'
  | 'look2'
  | 'watch'
  | 'sleep'
  | 'ahead'
  | 'justify'
  | 'undo'
  | 'touch'
  | 'set'
  | 'check'
  | 'held'
  | 'unhold'
  | 'unset'
  | 'remove'
  | 'done'
  | 'over';

export interface Process {
  phase: Phase;
  node: string | null;
  state: NodeState | null;
  version: number;
  children: readonly string[];
  next: NextState | null;
  granting: boolean;
  target: string | null;
  /** What its grant ahead goes by. */
  guess: { readonly version: number; readonly node: string; readonly sequence: number } | null;
  /** The node may have an entry of it that no look had led to. */
  ahead: boolean;
  /** The child whose change it has heard of. */
  noted: string | null;
  /** The zxid of the set that granted it, as the server knows it. */
  minted: number;
  token: number;
}

export interface World {
  zxid: number;
  version: number;
  state: NodeState;
  children: string[];
  sequence: number;
  /** Children that their own process changed. */
  touched: string[];
  faults: number;
  processes: Process[];
}

export function initial({ contenders }: WorldOptions): World {
  const process = ({ ahead = false }: Contending): Process => ({
    phase: ahead ? 'guess' : 'create',
    node: null,
    state: null,
    version: 0,
    children: [],
    next: null,
    granting: false,
    target: null,
    guess: null,
    ahead: false,
    noted: null,
    minted: 0,
    token: 0,
  });
  return { zxid: 1, version: 0, state: FREE, children: [], sequence: 0, touched: [], faults: 0, processes: contenders.map(process) };
}

/** What was read or planned is replaced, never changed: a copy shares it. */
export function copyOf(world: World): World {
  return { ...world, children: [...world.children], touched: [...world.touched], processes: world.processes.map((process) => ({ ...process })) };
}

/** What a process will not look at again is forgotten: worlds that differ in nothing else are one. */
export function forget(process: Process): void {
  const { phase } = process;
  if (phase !== 'look2' && phase !== 'ahead' && phase !== 'justify') [process.state, process.children] = [null, []];
  if (phase !== 'set' && phase !== 'unset' && phase !== 'undo') process.next = null;
  if (process.state === null && process.next === null) process.version = 0;
  if (phase !== 'create' && phase !== 'look' && phase !== 'look2' && phase !== 'ahead' && phase !== 'justify') process.guess = null;
  if (phase !== 'watch' && phase !== 'sleep') process.target = null;
  if (phase !== 'set') process.granting = false;
  if (phase === 'unhold' || phase === 'unset' || phase === 'remove' || phase === 'done' || phase === 'over') process.minted = process.token = 0;
  if (phase === 'done' || phase === 'over') process.node = null;
}

export function guidOf(index: number): string {
  return index.toString(16).padStart(32, '0');
}
