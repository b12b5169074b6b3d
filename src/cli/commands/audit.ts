import { setTimeout as delay } from 'node:timers/promises';
import type { AuditAction, AuditOutcome, AuditRecord } from '../../client/contract/answers.ts';
import type { ErrorCode } from '../../client/contract/codes.ts';
import { FencegateError } from '../../client/errors.ts';
import type { FencegateClient } from '../../client/fencegate-client.ts';
import type { AuditFilter } from '../../client/queries.ts';
import type { CommandContext } from '../command-context.ts';
import { type ConnectionFlags, withClient } from '../connection.ts';
import { EXIT } from '../exit-codes.ts';
import { isUnavailable } from '../failure.ts';
import { Interrupted } from '../interruptible.ts';
import { printable } from '../printable.ts';
import { outJson } from '../screen.ts';
import { noticeUnread } from '../standard-output.ts';
import { outTable } from '../table.ts';
import { UsageError } from '../usage-error.ts';

export interface AuditFlags extends ConnectionFlags {
  readonly json?: boolean;
  readonly follow?: boolean;
  readonly verify?: boolean;
  readonly pathPrefix?: string;
  readonly principal?: string;
  /** Filters by the label; `clientId` is our own. */
  readonly client?: string;
  readonly leaseRef?: string;
  readonly token?: string;
  readonly action?: AuditAction;
  readonly outcome?: AuditOutcome;
  readonly code?: ErrorCode;
  readonly request?: string;
  readonly operation?: string;
  /** RFC 3339. */
  readonly since?: string;
  readonly until?: string;
  readonly limit: number;
  /** How often `--follow` asks, ms. */
  readonly every?: number;
}

const HEAD = ['SEQ', 'AT', 'ACTION', 'RESOURCE', 'OUTCOME', 'CODE', 'BY', 'CLIENT', 'TOKEN', 'MARK'];
const PAGE_MAX = 1_000;
const EVERY_MS_DEFAULT = 1_000;
/** Of a gateway that does not answer. */
const AWAY_EVERY_MS_MAX = 10_000;
const WIDTHS = [8, 24, 13, 32, 9, 20, 12, 20, 8];

/** The newest records, oldest of them first, as one reads a log. With `--follow` what comes then, until SIGINT. */
export function showAudit(context: CommandContext, place: string | undefined, flags: AuditFlags): Promise<number> {
  if (flags.follow === true && flags.until !== undefined)
    throw new UsageError('--follow goes on with what comes, and --until ends: leave one of them away');
  if (flags.follow === true && flags.verify === true)
    throw new UsageError('--verify looks at the log once, and --follow goes on: leave one of them away');
  return withClient(context, flags, async (client, signal) => {
    if (flags.verify === true) return verify(context, client, signal, flags);
    const filter = filterOf(place, flags, signal);
    const newest = await after(client, filter, 0, flags.limit);
    if (newest.length === 0) await assertVolume(client, filter);
    if (flags.json === true) for (const record of newest) outJson(context.screen, record);
    else if (flags.follow === true) for (const line of [HEAD, ...newest.map(cells)]) context.screen.out(fixedLine(line));
    else await outTable(context.screen, HEAD, newest.map(cells));
    if (flags.follow !== true) return EXIT.ok;
    await follow(context, client, filter, newest.at(-1)?.seq ?? 0, flags);
    return EXIT.ok;
  });
}

/** Returns only when it was interrupted, which is how it is ended: a gateway that is away, as for a restart, is waited for. */
async function follow(context: CommandContext, client: FencegateClient, filter: AuditFilter, fromSeq: number, flags: AuditFlags): Promise<void> {
  const { signal } = filter;
  const everyMs = flags.every ?? EVERY_MS_DEFAULT;
  let lastSeq = fromSeq;
  let waitMs = everyMs;
  let isAway = false;
  const news = async (): Promise<AuditRecord[]> => {
    try {
      const records = await after(client, filter, lastSeq, Number.POSITIVE_INFINITY);
      waitMs = everyMs;
      isAway = false;
      return records;
    } catch (thrown) {
      if (!isUnavailable(thrown)) throw thrown;
      if (!isAway) context.screen.note(printable(`${thrown.code}: ${thrown.message} Waiting until the gateway answers again.`));
      isAway = true;
      waitMs = Math.max(everyMs, Math.min(waitMs * 2, AWAY_EVERY_MS_MAX));
      return [];
    }
  };
  const unwatch = noticeUnread();
  try {
    for (;;) {
      await delay(waitMs, undefined, signal === undefined ? {} : { signal });
      for (const record of await news()) {
        if (flags.json === true) outJson(context.screen, record);
        else context.screen.out(fixedLine(cells(record)));
        lastSeq = record.seq;
      }
    }
  } catch (thrown) {
    if (!(signal?.reason instanceof Interrupted)) throw thrown;
  } finally {
    unwatch();
  }
}

/**
 * Throws `volume_not_found`. The gateway shows the records of a volume that it had once, so it does not judge the name; where it has neither, the name
 * is a wrong one.
 */
async function assertVolume(client: FencegateClient, { volume, signal }: AuditFilter): Promise<void> {
  if (volume === undefined) return;
  const volumes = await client.volumes(signal === undefined ? {} : { signal });
  if (volumes.some(({ name }) => name === volume)) return;
  throw new FencegateError('volume_not_found', { detail: `There is no volume ${volume}, and no record of one that fits.` });
}

/** Records after `seq`, oldest first. Read backwards from the newest, by sequence: times may repeat and go back. */
async function after(client: FencegateClient, filter: AuditFilter, seq: number, atMost: number): Promise<AuditRecord[]> {
  const records: AuditRecord[] = [];
  for await (const record of client.audit(filter)) {
    if (record.seq <= seq || records.length >= atMost) break;
    records.push(record);
  }
  return records.reverse();
}

async function verify({ screen }: CommandContext, client: FencegateClient, signal: AbortSignal, flags: AuditFlags): Promise<number> {
  const chain = await client.verifyAudit({ signal });
  if (flags.json === true) outJson(screen, chain);
  else if (chain.valid) {
    const keyed = chain.keyed_from_seq === null ? '' : `, and it is keyed from record ${chain.keyed_from_seq} on`;
    screen.out(`the chain of ${chain.records} records is whole; its head is ${chain.head_hash}${keyed}\n`);
  } else screen.out(`the chain is broken at record ${chain.first_bad_seq}\n`);
  return chain.valid ? EXIT.ok : EXIT.failed;
}

/** `place` is a volume, or `volume/path`. */
function filterOf(place: string | undefined, flags: AuditFlags, signal: AbortSignal): AuditFilter {
  const [volume, ...path] = place?.split('/') ?? [];
  const named = {
    volume,
    // A slash after the volume alone, as for `ls`, names no path.
    path: path.join('/') || undefined,
    pathPrefix: flags.pathPrefix,
    principal: flags.principal,
    clientId: flags.client,
    leaseRef: flags.leaseRef,
    token: flags.token,
    action: flags.action,
    outcome: flags.outcome,
    code: flags.code,
    requestId: flags.request,
    operationId: flags.operation,
    since: flags.since,
    until: flags.until,
  };
  const given = Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined)) as AuditFilter;
  return { ...given, limit: Math.min(flags.limit, PAGE_MAX), signal };
}

function cells(record: AuditRecord): string[] {
  return [
    String(record.seq),
    record.at,
    record.action,
    record.resource ?? '',
    record.count > 1 ? `${record.outcome} x${record.count}` : record.outcome,
    record.code ?? '',
    record.principal ?? '',
    record.client_id ?? '',
    record.fencing_token ?? '',
    record.high_water_mark ?? '',
  ];
}

/** Lines that come one by one cannot wait for the widest. */
function fixedLine(line: readonly string[]): string {
  return `${line
    .map((cell, column) => (cell === '' ? '-' : printable(cell)).padEnd(WIDTHS[column] ?? 0))
    .join('  ')
    .trimEnd()}\n`;
}
