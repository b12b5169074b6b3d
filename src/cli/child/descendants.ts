import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** A process, told from a later one with the same number by when it started. */
export interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** In ticks of the system, since it was started. */
  readonly started: string;
}

/**
 * The living processes of a group, and everything that they started, in whatever group or session that is, as long as its parents live; and the
 * same for those of `known` that still live.
 */
export function familyOf(group: number, known: readonly ProcessFacts[], all: readonly ProcessFacts[] = processes()): ProcessFacts[] {
  const isKnown = (one: ProcessFacts): boolean => known.some(({ pid, started }) => pid === one.pid && started === one.started);
  const family = new Map(all.filter((one) => one.group === group || isKnown(one)).map((one) => [one.pid, one]));
  for (let before = -1; before !== family.size; ) {
    before = family.size;
    for (const one of all) if (family.has(one.parent)) family.set(one.pid, one);
  }
  return [...family.values()];
}

/** Those that live, as far as /proc shows them; none where there is no /proc, or one that counts processes otherwise than we do. */
function processes(): ProcessFacts[] {
  try {
    if (readlinkSync('/proc/self') !== String(process.pid)) return [];
    return readdirSync('/proc').flatMap((name) => (/^[0-9]+$/.test(name) ? factsOf(name) : []));
  } catch {
    return [];
  }
}

function factsOf(pid: string): ProcessFacts[] {
  try {
    return statFacts(Number(pid), readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    // It has ended meanwhile.
    return [];
  }
}

/** As in proc(5). The name is in brackets, and may have brackets and blanks in it. */
export function statFacts(pid: number, line: string): ProcessFacts[] {
  const [state = '', parent = '', group = '', ...rest] = line.slice(line.lastIndexOf(')') + 2).split(' ');
  // What has ended, and waits only for its parent to ask how.
  if (state === 'Z' || state === 'X') return [];
  return [{ pid, parent: Number(parent), group: Number(group), started: rest[STARTED_AFTER_GROUP] ?? '' }];
}

/** Field 22, where the group is field 5. */
const STARTED_AFTER_GROUP = 16;
