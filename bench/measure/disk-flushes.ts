import { readFileSync } from 'node:fs';

/** The field of a block device's `stat` that counts completed flushes (kernel documentation, block/stat). */
const FLUSHES = 15;

/**
 * How many flushes the block device has completed. Shows that a server that says "durable" is: without flushes nothing was
 * made durable, and far fewer than one per request means that requests shared them.
 */
export function diskFlushes(deviceStat: string | null): number | null {
  if (deviceStat === null) return null;
  const count = readFileSync(deviceStat, 'utf8').trim().split(/\s+/)[FLUSHES];
  return count === undefined ? null : Number(count);
}
