import { readFileSync } from 'node:fs';
import type { Descriptor } from './descriptor.ts';

/**
 * Of the mount that a held descriptor was opened on. A bind mount has one of its own, also where its device is that of the volume, so that names in
 * it would be second names of files (trap F19). What the kernel keeps in `/proc` waits for no disk. `null`: it does not say.
 */
export function mountIdOf({ fd }: Pick<Descriptor, 'fd'>): string | null {
  return /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1] ?? null;
}
