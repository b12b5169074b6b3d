import type { Clock } from '../../domain/clock.ts';
import { unavailable } from './contact-refusals.ts';
import { type ZkClient, ZkError, type ZkSession } from './zk-client.ts';

/** What the ensemble does not answer is tried again with the volume's start. */
export async function answered<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    if (!(thrown instanceof ZkError)) throw thrown;
    throw unavailable(`The coordinator did not answer: ${thrown.message}`);
  }
}

/** Resolves when it is connected, is over, or the time is up; the caller looks which. */
export function connected(client: ZkClient, clock: Clock, withinMs: number): Promise<void> {
  if (client.state === 'connected' || client.state === 'over') return Promise.resolve();
  return new Promise((resolve) => {
    const late = clock.after(withinMs, resolve);
    client.onState((state) => {
      if (state !== 'connected' && state !== 'over') return;
      late.cancel();
      resolve();
    });
  });
}

/** A session is resumed for nothing but its end. Rejects when no server said what became of it. */
export async function closedByResuming(resumed: ZkClient, clock: Clock, withinMs: number): Promise<void> {
  await connected(resumed, clock, withinMs);
  const { state } = resumed;
  await resumed.close();
  if (state !== 'connected' && state !== 'over') throw unavailable('The coordinator could not be reached.');
}

/** The stored session of an earlier process: `id:password:timeout`. */
export function parseSession(text: string | null): ZkSession | null {
  const [id, password, timeoutMs] = (text ?? '').split(':');
  return id === undefined || password === undefined || timeoutMs === undefined ? null : { id, password, timeoutMs: Number(timeoutMs) };
}

export function storedSession({ id, password, timeoutMs }: ZkSession): string {
  return `${id}:${password}:${timeoutMs}`;
}
