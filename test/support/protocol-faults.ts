import { copyOf, forget, guidOf, type Process, type World, type WorldOptions } from './protocol-process.ts';
import { commit, commitAhead, make, touch } from './protocol-steps.ts';

export function faultsOf(world: World, options: WorldOptions): World[] {
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
    // The connection goes while what was sent with the contender is on its way.
    if (process.guess !== null && process.phase !== 'create') {
      fault((_, one) => {
        one.phase = 'find';
      }, i);
    }
    if (process.phase === 'ahead') {
      fault((next, one) => {
        commitAhead(next, one, i);
        one.phase = 'find';
      }, i);
    }
    if (process.phase === 'set' || process.phase === 'undo') {
      fault((next, one) => {
        commit(next, one);
        one.phase = 'look';
      }, i);
    }
    if (process.phase === 'touch') {
      fault((next, one) => {
        if (one.node !== null && next.children.includes(one.node)) touch(next, one.node);
        one.phase = 'look';
      }, i);
    }
    // Never carried out; or what the check after the grant found is not known: it is looked again.
    if (['set', 'check', 'undo', 'touch'].includes(process.phase)) {
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
