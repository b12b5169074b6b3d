import { describe, expect, it } from 'vitest';
import { journalFindings } from '../../../src/doctor/journal-findings.ts';
import type { ChainReport } from '../../../src/domain/audit-record.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const fine: ChainReport = { valid: true, records: 10, firstSeq: 1, lastSeq: 10, headHash: '', firstBadSeq: null, keyedFromSeq: null };

function journal(
  verify: (fromSeq: number | null, signal: AbortSignal) => Promise<ChainReport>,
  changes: { readonly healthy?: boolean; readonly seq?: number } = {},
) {
  return {
    healthy: changes.healthy ?? true,
    head: () => ({ seq: changes.seq ?? 10, hash: '' }),
    verify,
    audit: async () => ({ records: [], nextCursor: null }),
    commit: async () => ({ seqs: [] }),
  };
}

describe('what the doctor asks of the journal', () => {
  it('is the newest records only, however long the log is', async () => {
    const asked: (number | null)[] = [];
    const verify = async (fromSeq: number | null): Promise<ChainReport> => {
      asked.push(fromSeq);
      return fine;
    };
    expect(await journalFindings(journal(verify), new FakeClock())).toEqual([]);
    expect(await journalFindings(journal(verify, { seq: 1_000_000 }), new FakeClock())).toEqual([]);
    expect(asked).toEqual([1, 1_000_000 - LIMITS.doctorChainRecordsMax]);
  });

  it('is told of a chain that is broken, of a disk commit that failed, and of a check that took too long', async () => {
    const clock = new FakeClock();
    const broken = await journalFindings(
      journal(async () => ({ ...fine, valid: false, firstBadSeq: 7 }), { healthy: false }),
      clock,
    );
    expect(broken.map(({ finding: { code, severity, evidence } }) => [code, severity, evidence['first_bad_seq']])).toEqual([
      ['journal_unhealthy', 'error', undefined],
      ['audit_chain_broken', 'error', 7],
    ]);
    const slow = journalFindings(
      journal((_from, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))),
      clock,
    );
    await clock.advanceAsync(LIMITS.doctorCheckMsMax);
    expect((await slow).map(({ finding: { code, severity, evidence } }) => [code, severity, evidence['why']])).toEqual([
      ['audit_chain_unchecked', 'warning', 'it took too long'],
    ]);
  });
});
