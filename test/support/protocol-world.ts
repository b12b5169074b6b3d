import type { LeaseMode } from '../../src/domain/lease.ts';
import { conflict } from '../../src/locks/decision.ts';
import { contenderPrefix, parseChild } from '../../src/locks/zookeeper/lock-node.ts';
import { decide, without } from '../../src/locks/zookeeper/protocol.ts';
import { FREE, type NextState, type NodeState } from '../../src/locks/zookeeper/resource-node.ts';
import { keyOf } from './world-key.ts';

export interface Contending {
  readonly mode: LeaseMode;
  readonly priority: number;
}

export interface WorldOptions {
  readonly contenders: readonly Contending[];
  /** Lost replies (also those of a release), expired sessions and deletes by a third party, altogether. */
  readonly faultsMax: number;
  /** `children` before `get`: the order that the recipe forbids. */
  readonly readsSwapped?: boolean;
}

type Phase = 'create' | 'find' | 'look' | 'look2' | 'watch' | 'sleep' | 'set' | 'check' | 'held' | 'unhold' | 'unset' | 'remove' | 'done' | 'over';

interface Process {
  phase: Phase;
  node: string | null;
  state: NodeState | null;
  version: number;
  children: readonly string[];
  next: NextState | null;
  granting: boolean;
  target: string | null;
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
  faults: number;
  processes: Process[];
}

/** Walks every order in which contenders, the server and faults can interleave. @returns what went wrong, or how many worlds were seen. */
export function explore(options: WorldOptions): { readonly worlds: number; readonly violation: string | null; readonly heldBy: ReadonlySet<number> } {
  const seen = new Set<string>();
  const stack: World[] = [initial(options)];
  const heldBy = new Set<number>();
  for (let world = stack.pop(); world !== undefined; world = stack.pop()) {
    const key = keyOf(world);
    if (seen.has(key)) continue;
    seen.add(key);
    const violation = violationOf(world, options);
    if (violation !== null) return { worlds: seen.size, violation, heldBy };
    for (const [i, { phase }] of world.processes.entries()) if (phase === 'held') heldBy.add(i);
    const moves = movesOf(world, options);
    if (moves.length === 0) {
      const asleep = world.processes.findIndex(({ phase }) => phase === 'sleep');
      if (asleep >= 0) return { worlds: seen.size, violation: `contender ${asleep} sleeps for ever`, heldBy };
    }
    stack.push(...moves);
    if (world.faults < options.faultsMax) stack.push(...faultsOf(world, options));
  }
  return { worlds: seen.size, violation: null, heldBy };
}

/** What was read or planned is replaced, never changed: a copy shares it. */
function copyOf(world: World): World {
  return { ...world, children: [...world.children], processes: world.processes.map((process) => ({ ...process })) };
}

/** What a process will not look at again is forgotten: worlds that differ in nothing else are one. */
function forget(process: Process): void {
  const { phase } = process;
  if (phase !== 'look2') [process.state, process.children] = [null, []];
  if (phase !== 'set' && phase !== 'unset') process.next = null;
  if (phase !== 'look2' && phase !== 'set' && phase !== 'unset') process.version = 0;
  if (phase !== 'watch' && phase !== 'sleep') process.target = null;
  if (phase !== 'set') process.granting = false;
  if (phase === 'unhold' || phase === 'unset' || phase === 'remove' || phase === 'done' || phase === 'over') process.minted = process.token = 0;
  if (phase === 'done' || phase === 'over') process.node = null;
}

function initial({ contenders }: WorldOptions): World {
  const process = (): Process => ({
    phase: 'create',
    node: null,
    state: null,
    version: 0,
    children: [],
    next: null,
    granting: false,
    target: null,
    minted: 0,
    token: 0,
  });
  return { zxid: 1, version: 0, state: FREE, children: [], sequence: 0, faults: 0, processes: contenders.map(process) };
}

/** Two of them use the resource at once although neither's child is gone; or a token that is not the one of the grant. */
function violationOf({ processes, children }: World, { contenders }: WorldOptions): string | null {
  const holding = processes.flatMap((process, i) =>
    process.phase === 'held' && process.node !== null && children.includes(process.node)
      ? [{ process, mode: contenders[i]?.mode ?? 'exclusive' }]
      : [],
  );
  for (const [i, a] of holding.entries()) {
    if (a.process.token !== a.process.minted) return `token ${a.process.token} instead of ${a.process.minted}`;
    for (const b of holding.slice(i + 1)) {
      if (conflict(a.mode, b.mode)) return 'two holders';
      if (a.process.token === b.process.token) return 'two equal tokens';
    }
  }
  return null;
}

function movesOf(world: World, options: WorldOptions): World[] {
  return world.processes.flatMap((_, i) => {
    const next = copyOf(world);
    const process = next.processes[i];
    if (process === undefined || !move(next, process, i, options)) return [];
    forget(process);
    return [next];
  });
}

function guidOf(index: number): string {
  return index.toString(16).padStart(32, '0');
}

function make(world: World, index: number, { contenders }: WorldOptions): string {
  const terms = contenders[index] ?? { mode: 'exclusive', priority: 5 };
  const name = `${contenderPrefix({ guid: guidOf(index), ...terms })}${String(world.sequence).padStart(10, '0')}`;
  world.sequence += 1;
  world.zxid += 1;
  world.children.push(name);
  return name;
}

/** One step of one process, with its effect at the server. @returns false when it can do nothing now. */
function move(world: World, process: Process, index: number, options: WorldOptions): boolean {
  const read = (what: 'state' | 'children'): void => {
    if (what === 'children') process.children = [...world.children];
    else [process.state, process.version] = [world.state, world.version];
  };
  switch (process.phase) {
    case 'create':
      process.node = make(world, index, options);
      process.phase = 'look';
      return true;
    case 'find':
      process.node = [...world.children].sort().find((name) => name.includes(guidOf(index))) ?? null;
      process.phase = process.node === null ? 'create' : 'look';
      return true;
    case 'look':
      read(options.readsSwapped === true ? 'children' : 'state');
      process.phase = 'look2';
      return true;
    case 'look2':
      read(options.readsSwapped === true ? 'state' : 'children');
      judge(process, index);
      return true;
    case 'watch':
      process.phase = process.target !== null && world.children.includes(process.target) ? 'sleep' : 'look';
      return true;
    case 'sleep':
      if (process.target !== null && world.children.includes(process.target)) return false;
      process.phase = 'look';
      return true;
    case 'set':
      process.phase = commit(world, process) && process.granting ? 'check' : 'look';
      return true;
    case 'check':
      process.phase = process.node !== null && world.children.includes(process.node) ? 'held' : 'over';
      return true;
    case 'held':
      process.phase = 'unhold';
      return true;
    case 'unhold':
      read('state');
      process.next =
        process.state === null
          ? null
          : without(
              process.state,
              process.state.holders.filter(({ node }) => node === process.node),
              true,
            );
      process.phase = 'unset';
      return true;
    case 'unset':
      process.granting = false;
      process.phase = commit(world, process) ? 'remove' : 'unhold';
      return true;
    case 'remove':
      world.children = world.children.filter((name) => name !== process.node);
      world.zxid += 1;
      process.phase = 'done';
      return true;
    default:
      return false;
  }
}

function judge(process: Process, index: number): void {
  const { state, node } = process;
  if (state === null || node === null) return;
  const entry = state.holders.find((holder) => holder.node === node);
  if (!process.children.includes(node)) {
    process.phase = 'over';
  } else if (entry !== undefined) {
    // The reply of our own grant was lost: the number is in the entry.
    process.token = Number(entry.token);
    process.phase = 'held';
  } else {
    const step = decide({ state, children: process.children.map(parseChild), own: new Set([node]) });
    if (step.kind === 'wait') {
      process.target = step.watches.get(node) ?? null;
      process.phase = 'watch';
      return;
    }
    process.phase = 'set';
    process.granting = step.kind === 'grant';
    const holder = { lease: `l${index}`, node, mode: parseChild(node).contender?.mode ?? 'exclusive', token: null, home: 'h', lockDelayMs: 0 };
    process.next = step.kind === 'clear' ? step.next : { ...state, holders: [...state.holders, holder] };
  }
}

/** The version-checked set. */
function commit(world: World, process: Process): boolean {
  if (process.next === null || world.version !== process.version) return false;
  world.zxid += 1;
  world.version += 1;
  const token = BigInt(world.zxid);
  world.state = { ...FREE, holders: process.next.holders.map((holder) => ({ ...holder, token: holder.token ?? token })) };
  if (process.granting) {
    process.minted = world.zxid;
    process.token = world.zxid;
  }
  return true;
}

function faultsOf(world: World, options: WorldOptions): World[] {
  const worlds: World[] = [];
  const fault = (change: (next: World, process: Process) => void, index: number): void => {
    const next = copyOf(world);
    const process = next.processes[index];
    if (process === undefined) return;
    next.faults += 1;
    change(next, process);
    forget(process);
    worlds.push(next);
  };
  for (const [i, process] of world.processes.entries()) {
    if (process.phase === 'done' || process.phase === 'over') continue;
    fault((next, one) => {
      next.children = next.children.filter((name) => !name.includes(guidOf(i)));
      one.phase = 'over';
    }, i);
    if (process.node !== null && world.children.includes(process.node)) {
      // A third party deletes the child; its process has not heard of it.
      fault((next) => {
        next.children = next.children.filter((name) => name !== process.node);
      }, i);
    }
    if (process.phase === 'create') {
      fault((next, one) => {
        make(next, i, options);
        one.phase = 'find';
      }, i);
      fault((_, one) => {
        one.phase = 'find';
      }, i);
    }
    if (process.phase === 'set') {
      fault((next, one) => {
        commit(next, one);
        one.phase = 'look';
      }, i);
    }
    // Never carried out; or what the check after the grant found is not known: it is looked again.
    if (process.phase === 'set' || process.phase === 'check') {
      fault((_, one) => {
        one.phase = 'look';
      }, i);
    }
    // Of a release: its entry is gone already when it is tried again.
    if (process.phase === 'unset') {
      fault((next, one) => {
        one.granting = false;
        commit(next, one);
        one.phase = 'unhold';
      }, i);
    }
  }
  return worlds;
}
