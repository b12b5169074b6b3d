import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from './gateway-client.ts';

/**
 * Everything that a refused write must not have touched: for each name its kind, inode, mode, links, size, time and bytes. Of the
 * gateway's own directory only the names below the incarnations count (nothing staged may be left); its stamp lives its own life.
 */
export function volumeSnapshot(root: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(root, { encoding: 'buffer' })) {
    const shown = name.toString('latin1');
    if (shown === '.fencegate') for (const inside of stagedNames(root)) found[`.fencegate/${inside}`] = 'there';
    else look(Buffer.concat([Buffer.from(`${root}/`), name]), shown, found);
  }
  return found;
}

/** The same once nothing of earlier writes is left to tidy, which happens behind their answers. */
export async function quietSnapshot(root: string): Promise<Readonly<Record<string, string>>> {
  await eventually(
    () => stagedNames(root),
    (names) => names.length === 0,
  );
  return volumeSnapshot(root);
}

/** What lies in the incarnation directories: staged files, trash, redo entries, manifests. The stamp is written anew each second. */
export function stagedNames(root: string): string[] {
  const own = join(root, '.fencegate');
  return readdirSync(own, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => readdirSync(join(own, name)).map((inside) => `${name}/${inside}`))
    .filter((name) => !name.endsWith('-stamp.draft') && !isKeptOpen(name.slice(name.indexOf('/') + 1)));
}

/** What an NFS client keeps of a removed file for as long as a process has it open (trap X11): no name of a file any more, gone with that process. */
export function isKeptOpen(name: string): boolean {
  return name.startsWith('.nfs');
}

function look(path: Buffer, shown: string, found: Record<string, string>): void {
  const stats = lstatSync(path, { bigint: true });
  const facts = [stats.ino, stats.mode.toString(8), stats.nlink, stats.size, stats.mtimeNs];
  if (stats.isFile()) facts.push(createHash('sha256').update(readFileSync(path)).digest('hex'));
  if (stats.isSymbolicLink()) facts.push(readlinkSync(path));
  found[shown] = facts.join(' ');
  if (!stats.isDirectory()) return;
  for (const name of readdirSync(path, { encoding: 'buffer' })) {
    look(Buffer.concat([path, Buffer.from('/'), name]), `${shown}/${name.toString('latin1')}`, found);
  }
}

/** Whether another process of the gateway may still have files open in the volume. */
export type Others = 'ended' | 'stopped';

/** Whether it may lie in an incarnation directory although everything has ended. */
export function mayStay(entry: string, others: Others): boolean {
  return others === 'stopped' && isKeptOpen(entry);
}
