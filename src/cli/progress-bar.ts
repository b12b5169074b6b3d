import type { Progress } from '../client/upload-exchange.ts';
import type { Screen } from './screen.ts';

const MIB = 1_048_576;
/** Below this a bar would only flicker. */
const SHOWN_FROM_BYTES = MIB;

export interface TransferProgress {
  readonly onProgress: (progress: Progress) => void;
  /** Takes the bar away: before anything else is shown, which would stand on its line. Idempotent. */
  readonly end: () => void;
}

/** A bar on standard error, when that is a terminal and the transfer is not over at once. */
export async function transferProgress(screen: Screen, name: string): Promise<TransferProgress> {
  if (!screen.progress) return { onProgress: () => undefined, end: () => undefined };
  const { default: progress } = await import('cli-progress');
  const format = `${name}  {bar} {percentage}%  {done} of {all} MiB  {eta_formatted} left`;
  const bar = new progress.SingleBar({ format, stream: process.stderr, clearOnComplete: true, hideCursor: false }, progress.Presets.shades_classic);
  let started = false;
  return {
    onProgress: ({ transferredBytes, totalBytes }) => {
      if (totalBytes === null || totalBytes < SHOWN_FROM_BYTES) return;
      const shown = { done: (transferredBytes / MIB).toFixed(1), all: (totalBytes / MIB).toFixed(1) };
      if (started) bar.update(transferredBytes, shown);
      else bar.start(totalBytes, transferredBytes, shown);
      started = true;
    },
    end: () => {
      if (started) bar.stop();
      started = false;
    },
  };
}
