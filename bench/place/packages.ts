import { StopLine } from '../stop-line.ts';
import { command, isInstalled } from './command.ts';

/** A command (or a file, by its absolute path) that the benchmark needs and the Debian package that has it. */
export interface Needed {
  readonly command: string;
  readonly package: string;
}

/** Installs what is missing. @throws StopLine when that cannot be done. */
export async function ensureInstalled(needed: readonly Needed[], say: (line: string) => void): Promise<void> {
  const missing: string[] = [];
  for (const item of needed) {
    if (!(await isInstalled(item.command)) && !missing.includes(item.package)) missing.push(item.package);
  }
  if (missing.length === 0) return;
  const line = `apt-get install -y ${missing.join(' ')}`;
  if (process.getuid?.() !== 0) throw new StopLine(`packages are missing; run as root: ${line}`);
  say(`installing ${missing.join(', ')} ...`);
  try {
    await command('env', ['DEBIAN_FRONTEND=noninteractive', 'apt-get', 'install', '-y', '--no-install-recommends', ...missing]);
  } catch (cause) {
    throw new StopLine(`packages could not be installed; try: apt-get update && ${line}`, { cause });
  }
}
