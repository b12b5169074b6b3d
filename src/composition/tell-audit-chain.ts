import type { Clock } from '../domain/clock.ts';
import type { Journal } from '../domain/journal.ts';
import { LIMITS } from '../domain/limits.ts';
import type { KeyedPartAtStart } from '../journal/keyed-part.ts';
import type { Logger } from '../observability/logger.ts';

/** Said at every start: somebody who can write the journal's file may let the key seem new, but not in logs that are kept elsewhere. */
export function tellKeyedPart({ fromSeq, genuine, stated }: KeyedPartAtStart, logger: Logger): void {
  if (!genuine) logger.error('the audit chain is not valid: what says from where on it is keyed is missing, or no configured key has sealed it');
  else if (stated)
    logger.warn({ keyed_from_seq: fromSeq }, 'the audit key is used for the first time: the chain is keyed from this record on; note it');
  else if (fromSeq !== null) logger.info({ keyed_from_seq: fromSeq }, 'the audit chain is keyed from this record on');
}

/** Each minute, until the clock stops: a tail that is cut off later shows where the log is kept elsewhere (`write-protocol.md`, Journal). */
export function tellHead(clock: Clock, journal: Pick<Journal, 'head'>, logger: Logger): void {
  clock.after(LIMITS.auditHeadToldEveryMs, () => {
    const { seq, hash } = journal.head();
    logger.info({ head_seq: seq, head_hash: hash }, 'the head of the audit chain');
    tellHead(clock, journal, logger);
  });
}
