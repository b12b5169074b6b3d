import { spawn } from 'node:child_process';
import { fstatSync } from 'node:fs';

const STANDARD_OUTPUT = 1;

/**
 * Calls `gone` when nobody reads the pipe of standard output any more, also while there is nothing to write: Node is told of that by a write alone. GNU
 * `tail`, which follows a file in which nothing happens, looks at its own output each second and then ends by SIGPIPE. It ends with this process,
 * whatever ends that: the pipe stays open for as long as it lives. Where there is no such `tail`, the next write tells.
 * @returns ends the watch.
 */
export function watchReader(gone: () => void): () => void {
  if (!fstatSync(STANDARD_OUTPUT).isFIFO()) return () => undefined;
  const watcher = spawn('tail', ['-f', `--pid=${process.pid}`, '/dev/null'], { stdio: ['ignore', STANDARD_OUTPUT, 'ignore'] });
  watcher.on('error', () => undefined);
  watcher.on('exit', (_code, signal) => {
    if (signal === 'SIGPIPE') gone();
  });
  return () => void watcher.kill('SIGKILL');
}
