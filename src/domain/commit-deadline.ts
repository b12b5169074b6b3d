import { LIMITS } from './limits.ts';

/** How long the apply of one commit section may take before its outcome counts as unknown. */
export function commitDeadlineMs(files: number): number {
  return LIMITS.commitDeadlineMs + Math.max(0, Math.min(files, LIMITS.multipartFilesMax) - 1) * LIMITS.commitDeadlinePerFileMs;
}
