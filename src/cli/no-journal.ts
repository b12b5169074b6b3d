import { printable } from './printable.ts';
import type { Host } from './serve.ts';

/** What works on the journal of this machine's gateway makes none: in the wrong directory that would hide the mistake. */
export function complainOfNoJournal(host: Host, dataDir: string): void {
  host.complain(printable(`there is no journal in ${dataDir} (FENCEGATE_DATA_DIR); nothing was made there`));
  host.complain('next: set FENCEGATE_DATA_DIR to the data directory of the gateway');
}
