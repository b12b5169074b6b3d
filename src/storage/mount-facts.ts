import { readFile, realpath } from 'node:fs/promises';
import { LIMITS } from '../domain/limits.ts';
import type { MountFacts, MountWarning } from '../domain/mount-facts.ts';
import type { FileSystem } from './file-system.ts';
import { type Mount, mountOf, parseMountInfo } from './mount-table.ts';

/** What the mount table says of a volume's directory; `null` when it does not name it. The caller puts a deadline on it. */
export async function mountFactsOf(path: string, { local }: FileSystem): Promise<MountFacts | null> {
  const [real, table] = [await realpath(path), await readFile('/proc/self/mountinfo', 'utf8')];
  const mount = mountOf(real, parseMountInfo(table));
  if (mount === null) return null;
  const { type, source, options } = mount;
  return { fileSystem: type, isNetwork: !local, source, options, warnings: mountWarnings(mount) };
}

/**
 * The options of an NFS mount (nfs(5)) that weaken a promise, each with the remedy. What the *server* does with a write that it has
 * acknowledged (`async` of the export) cannot be seen from here.
 */
export function mountWarnings({ type, options }: Pick<Mount, 'type' | 'options'>): MountWarning[] {
  if (type !== 'nfs' && type !== 'nfs4') return [];
  const values = new Map(options.map((option) => [option.split('=', 1)[0] ?? '', option.slice(option.indexOf('=') + 1)] as const));
  const given = (name: string): string | null => (values.has(name) ? (options.find((option) => option.split('=', 1)[0] === name) ?? null) : null);
  const warnings: MountWarning[] = [];

  const soft = given('soft') ?? given('softerr');
  if (soft !== null)
    warnings.push({
      option: soft,
      weakens: 'a call that the client gives up may still be carried out by the server, so more writes end as outcome_unknown',
      remedy: 'mount with hard: the gateway has a deadline of its own for each call',
    });

  const locks = given('nolock') ?? (['all', 'flock', 'posix'].includes(values.get('local_lock') ?? '') ? given('local_lock') : null);
  if (locks !== null)
    warnings.push({
      option: locks,
      weakens: 'programs that lock files here are not seen by programs on other clients; the gateway itself relies on no such lock',
      remedy: 'mount without nolock and local_lock if programs other than the gateway lock files on this export',
    });

  const cached = ['acregmax', 'acdirmax'].filter((name) => Number(values.get(name) ?? 0) * 1_000 > LIMITS.attributeCacheMsMax).map(given);
  for (const option of cached)
    if (option !== null)
      warnings.push({
        option,
        weakens: 'a change that somebody makes behind the gateway is noticed as late as this',
        remedy: `leave it out or set it to at most ${LIMITS.attributeCacheMsMax / 1_000} seconds`,
      });

  const lookups = values.get('lookupcache') ?? 'all';
  if (lookups === 'all')
    warnings.push({
      option: 'lookupcache=all',
      weakens:
        'a file that another client makes may be answered as missing for up to acdirmax; writes that must not replace are decided by the server',
      remedy: 'mount with lookupcache=positive if others write to this export as well',
    });
  return warnings;
}
