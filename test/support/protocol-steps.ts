import { contenderName, parseChild } from '../../src/locks/zookeeper/lock-node.ts';
import { decide, without } from '../../src/locks/zookeeper/protocol.ts';
import { FREE, isFree } from '../../src/locks/zookeeper/resource-node.ts';
import { guidOf, type Process, type World, type WorldOptions } from './protocol-process.ts';

function nextName({ sequence }: World, index: number, { contenders }: WorldOptions): string {
  const { mode, priority } = contenders[index] ?? { mode: 'exclusive', priority: 5 };
  return contenderName({ guid: guidOf(index), mode, priority }, sequence);
}

export function make(world: World, index: number, options: WorldOptions): string {
  const name = nextName(world, index, options);
  world.sequence += 1;
  world.zxid += 1;
  world.children.push(name);
  return name;
}

/** One step of one process, with its effect at the server. @returns false when it can do nothing now. */
export function move(world: World, process: Process, index: number, options: WorldOptions): boolean {
  const read = (what: 'state' | 'children'): void => {
    if (what === 'children') process.children = [...world.children];
    else [process.state, process.version] = [world.state, world.version];
  };
  switch (process.phase) {
    case 'guess':
      // It holds for as long as nobody comes; others may, until it is used.
      process.guess = isFree(world.state) ? { version: world.version, node: nextName(world, index, options), sequence: world.sequence } : null;
      process.phase = 'create';
      return true;
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
      if (process.guess === null) judge(process, index);
      else process.phase = 'ahead';
      return true;
    case 'ahead':
      if (commitAhead(world, process, index)) {
        process.phase = 'justify';
        return true;
      }
      process.guess = null;
      process.ahead = false;
      judge(process, index);
      return true;
    case 'justify':
      justify(world, process, index);
      process.guess = null;
      return true;
    case 'undo':
      process.granting = false;
      process.phase = commit(world, process) ? 'touch' : 'look';
      return true;
    case 'touch':
      if (process.node !== null && world.children.includes(process.node)) touch(world, process.node);
      [process.phase, process.ahead] = ['look', false];
      return true;
    case 'watch':
      watch(world, process);
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
      // Its child's end goes down the pipe right behind, whatever becomes of the change.
      if (options.contenders[index]?.ahead === true) world.children = world.children.filter((name) => name !== process.node);
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

/** Whether the look, without an entry of its own, lets it in. */
function isDue({ state, children, node }: Process, index: number): boolean {
  if (state === null || node === null) return false;
  const holders = state.holders.filter(({ lease }) => lease !== `l${index}`);
  return decide({ state: { ...state, holders }, children: children.map(parseChild), own: new Set([node]) }).kind === 'grant';
}

/** The grant that was sent with the contender. @returns false when the node refused it. */
export function commitAhead(world: World, process: Process, index: number): boolean {
  const { guess } = process;
  process.ahead = true;
  if (guess === null || world.version !== guess.version) return false;
  const kept = process.version;
  process.version = guess.version;
  process.next = { ...FREE, holders: [entryOf(index, guess.node)] };
  process.granting = true;
  const done = commit(world, process);
  process.version = kept;
  return done;
}

/** It counts if the child is there, and the reads before it would have led to it. */
function justify(world: World, process: Process, index: number): void {
  const { node, guess } = process;
  if (node === null || !world.children.includes(node)) process.phase = 'over';
  else if (guess?.node === node && isDue(process, index)) [process.phase, process.ahead] = ['held', false];
  else process.phase = 'look';
}

export function touch(world: World, node: string): void {
  if (!world.touched.includes(node)) world.touched.push(node);
  for (const process of world.processes) if (process.phase === 'sleep' && process.target === node) process.phase = 'look';
}

function watch({ children, touched }: World, process: Process): void {
  const { target } = process;
  if (target === null || !children.includes(target)) process.phase = 'look';
  else if (touched.includes(target) && process.noted !== target) [process.phase, process.noted] = ['look', target];
  else process.phase = 'sleep';
}

function entryOf(index: number, node: string) {
  return { lease: `l${index}`, node, mode: parseChild(node).contender?.mode ?? 'exclusive', token: null, home: 'h', lockDelayMs: 0 } as const;
}

function judge(process: Process, index: number): void {
  const { state, node } = process;
  if (state === null || node === null) return;
  const entry = state.holders.find((holder) => holder.node === node);
  const early = process.ahead ? state.holders.filter(({ lease }) => lease === `l${index}`) : [];
  if (!process.children.includes(node)) {
    process.phase = 'over';
  } else if (early.length > 0 && (entry === undefined || !isDue(process, index))) {
    process.next = without(state, early, true);
    process.phase = 'undo';
  } else if (process.ahead && entry === undefined) {
    process.phase = 'touch';
  } else if (entry !== undefined) {
    // The reply of our own grant was lost: the number is in the entry.
    process.ahead = false;
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
    process.next = step.kind === 'clear' ? step.next : { ...state, holders: [...state.holders, entryOf(index, node)] };
  }
}

/** The version-checked set. */
export function commit(world: World, process: Process): boolean {
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
