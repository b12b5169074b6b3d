import type { Clock } from '../domain/clock.ts';
import { asGatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { type Diagnosis, diagnosis } from './diagnosis.ts';
import type { DoctorDeps } from './doctor-deps.ts';
import type { RepeatedRefusal } from './refusal-window.ts';

/** The newest part of the audit chain is recomputed; all of it by `GET /v1/audit/verify`, which takes as long as the log is. */
export async function journalFindings(journal: DoctorDeps['journal'], clock: Clock): Promise<Diagnosis[]> {
  const found: Diagnosis[] = [];
  if (!journal.healthy) {
    const what = 'A disk commit failed. Writes and grants are refused before anything is touched; reads go on.';
    found.push(
      diagnosis({
        code: 'journal_unhealthy',
        severity: 'error',
        resource: null,
        evidence: { what, how: 'Free or repair the disk of the data directory, then start the gateway again.' },
      }),
    );
  }
  const late = new AbortController();
  const timer = clock.after(LIMITS.doctorCheckMsMax, () => late.abort(new Error('late')));
  const fromSeq = Math.max(1, journal.head().seq - LIMITS.doctorChainRecordsMax);
  try {
    const report = await journal.verify(fromSeq, late.signal);
    if (!report.valid) {
      const evidence = {
        first_bad_seq: report.firstBadSeq,
        checked_from_seq: report.firstSeq,
        records: report.records,
        how: 'GET /v1/audit/verify checks all of it. Compare with the heads in the log, and restore from a backup.',
      };
      found.push(diagnosis({ code: 'audit_chain_broken', severity: 'error', resource: null, evidence }));
    }
  } catch (thrown) {
    const why = late.signal.aborted ? 'it took too long' : asGatewayError(thrown).code;
    found.push(
      diagnosis({
        code: 'audit_chain_unchecked',
        severity: 'warning',
        resource: null,
        evidence: { why, how: 'GET /v1/audit/verify checks all of it.' },
      }),
    );
  } finally {
    timer.cancel();
  }
  return found;
}

/** A client that goes on although it was told again and again that its lease is over. */
export function repeatedRefusals(repeated: readonly RepeatedRefusal[]): Diagnosis[] {
  return repeated.map(({ count, firstAt, record }) => {
    const { principal, clientId, remoteAddress, code, volume, path, fencingToken, highWaterMark, action } = record;
    return diagnosis({
      code: 'refused_again_and_again',
      severity: 'warning',
      resource: volume === null || path === null ? null : `${volume}/${path}`,
      subject: JSON.stringify([principal, clientId, remoteAddress, code]),
      evidence: {
        count,
        code,
        action,
        principal,
        client_id: clientId,
        remote_address: remoteAddress,
        fencing_token: fencingToken?.toString() ?? null,
        high_water_mark: highWaterMark?.toString() ?? null,
        first_at: firstAt,
        last_at: record.at,
        how: 'It holds nothing and harms nothing: every attempt is refused. Stop the client, or let it take a new lease.',
      },
    });
  });
}
