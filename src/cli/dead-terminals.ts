import { closeSync, fstatSync } from 'node:fs';
import { isatty } from 'node:tty';

const STANDARD_STREAMS = [0, 1, 2];

/**
 * For the very end. Node puts terminals back as it found them, and aborts where one is gone: whoever waits for us would see that instead of the
 * exit code. What is closed it leaves alone.
 */
export function leaveDeadTerminals(): void {
  for (const stream of STANDARD_STREAMS) {
    try {
      if (fstatSync(stream).isCharacterDevice() && !isatty(stream)) closeSync(stream);
    } catch {
      // It is closed.
    }
  }
}
