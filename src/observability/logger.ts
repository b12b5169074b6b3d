import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from 'pino';
import { REDACTED, REDACTED_PATHS, scrub } from './redaction.ts';

export type { Logger } from 'pino';

/**
 * JSON lines, one per event. Written synchronously: a line that was logged is out before a crash or a `kill -9` of our own.
 * @param sink where lines go; standard output when left out.
 */
export function createLogger(level: string, sink: DestinationStream = destination({ fd: 1, sync: true })): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      messageKey: 'message',
      errorKey: 'error',
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED_PATHS, censor: REDACTED },
    },
    { write: (line) => sink.write(scrub(line)) },
  );
}
