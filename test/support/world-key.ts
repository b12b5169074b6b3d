import { createHash } from 'node:crypto';
import { PASS_PER_STEP } from '../../src/locks/order-key.ts';
import { parseChild } from '../../src/locks/zookeeper/lock-node.ts';
import type { World } from './protocol-process.ts';

/**
 * Millions of worlds are remembered: by the digest of what their future hangs on. Nobody decides by how large a number is, only by which one is
 * larger (children, tokens) or whether it is still the same (versions); so worlds whose numbers stand in the same order go on alike, and are one.
 * That holds while fewer arrive than a step of priority is worth in arrivals.
 */
export function keyOf(world: World): string {
  if (world.sequence >= PASS_PER_STEP) throw new Error('in a world of so many arrivals the distance between two of them counts');
  const { children, state, version, sequence, touched, faults, processes } = world;
  const names = new Set(children);
  const tokens = new Set([0]);
  const note = (holders: Holders): void => {
    for (const { node, token } of holders ?? []) {
      names.add(node);
      tokens.add(Number(token));
    }
  };
  note(state.holders);
  for (const process of processes) {
    note(process.state?.holders);
    note(process.next?.holders);
    for (const name of [process.node, process.target, process.noted, process.guess?.node ?? null, ...process.children])
      if (name !== null) names.add(name);
    for (const token of [process.minted, process.token]) tokens.add(token);
  }
  const nameOrder = new Map([...names].sort((a, b) => sequenceOf(a) - sequenceOf(b)).map((name, n) => [name, `${n}${ownerOf(name)}`]));
  const tokenOrder = new Map([...tokens].sort((a, b) => a - b).map((token, n) => [token, n]));
  const name = (one: string | null): string => (one === null ? '-' : (nameOrder.get(one) ?? ''));
  const listed = (holders: Holders): string => holders?.map(({ node, token }) => `${name(node)}${tokenOrder.get(Number(token))}`).join() ?? '-';
  const told = processes.map((process) => [
    process.phase,
    name(process.node),
    listed(process.state?.holders),
    process.version === version,
    process.children.map(name).join(),
    listed(process.next?.holders),
    process.granting,
    name(process.target),
    process.guess === null ? '-' : `${name(process.guess.node)}${process.guess.version === version}${process.guess.sequence === sequence}`,
    process.ahead,
    name(process.noted),
    tokenOrder.get(process.minted),
    tokenOrder.get(process.token),
  ]);
  const text = [faults, children.map(name).join(), touched.map(name).join(), listed(state.holders), ...told.map((one) => one.join(' '))].join('\n');
  return createHash('sha1').update(text).digest('base64');
}

type Holders = readonly { readonly node: string; readonly token: bigint | null }[] | undefined;

function sequenceOf(name: string): number {
  return parseChild(name).sequence ?? 0;
}

/** Whose it is. */
function ownerOf(name: string): string {
  return parseChild(name).contender?.guid.slice(-1) ?? '';
}
