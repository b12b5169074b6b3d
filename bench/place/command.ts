import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Runs a command to its end. @returns its standard output. @throws Error with its standard error when it fails. */
export async function command(name: string, args: readonly string[]): Promise<string> {
  const { stdout } = await run(name, [...args], { encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 });
  return stdout;
}

/** True when the command can be found: in PATH or where the system's own tools are, which an ordinary PATH may lack. An absolute path (a module of a server) need only be there. */
export async function isInstalled(name: string): Promise<boolean> {
  if (name.startsWith('/')) return existsSync(name);
  return command('sh', ['-c', 'PATH="$PATH:/usr/sbin:/sbin" command -v "$1"', 'sh', name]).then(
    () => true,
    () => false,
  );
}
