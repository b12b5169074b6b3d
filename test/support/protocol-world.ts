import { conflict } from '../../src/locks/decision.ts';
import { faultsOf } from './protocol-faults.ts';
import { copyOf, forget, initial, type World, type WorldOptions } from './protocol-process.ts';
import { move } from './protocol-steps.ts';
import { keyOf } from './world-key.ts';

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
