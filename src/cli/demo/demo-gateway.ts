import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const BIN = fileURLToPath(new URL('../../../bin/fencegate.cjs', import.meta.url));
const START_MS_MAX = 10_000;
const STOP_MS_MAX = 3_000;

/**
 * Starts a gateway of its own as a process: a free port, a data directory that is thrown away, nothing of the caller's settings.
 * Rejects with what it complained about.
 */
export async function startGateway(directory: string): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const child = spawn(process.execPath, [BIN, 'serve'], {
    env: { FENCEGATE_PORT: '0', FENCEGATE_DATA_DIR: join(directory, 'data'), FENCEGATE_DRAIN_MS: '1000' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX);
    await exited;
    clearTimeout(timer);
  };
  const giveUp = setTimeout(() => child.kill('SIGKILL'), START_MS_MAX);
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const url = urlOf(line);
      if (url === null) continue;
      child.stdout.resume();
      return { url, stop };
    }
    throw new Error(complaint.trim() || 'the gateway did not start');
  } finally {
    clearTimeout(giveUp);
  }
}

function urlOf(line: string): string | null {
  const event = JSON.parse(line) as { message?: unknown; url?: unknown };
  return event.message === 'listening' && typeof event.url === 'string' ? event.url : null;
}
