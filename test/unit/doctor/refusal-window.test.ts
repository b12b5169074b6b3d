import { describe, expect, it } from 'vitest';
import { repeatedRefusals } from '../../../src/doctor/journal-findings.ts';
import { RefusalWindow } from '../../../src/doctor/refusal-window.ts';
import type { AuditDraft } from '../../../src/domain/audit-record.ts';
import type { ErrorCode } from '../../../src/domain/errors.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const MIN = LIMITS.refusalsRepeatedMin;
const WINDOW = LIMITS.refusalsRepeatedWindowMs;

function lab() {
  const clock = new FakeClock();
  const window = new RefusalWindow(clock);
  const written: AuditDraft[] = [];
  const log = window.hearing({
    refused: async (record) => void written.push(record),
    refusedEarly: (record) => void written.push(record),
    flush: async () => undefined,
  });
  const refuse = async (times: number, code: ErrorCode = 'stale_token', clientId = 'zombie', path = 'file'): Promise<void> => {
    for (let i = 0; i < times; i += 1) {
      await log.refused({
        at: new Date(clock.wallMs()).toISOString(),
        action: 'put',
        volume: 'v',
        path,
        code,
        principal: 'anonymous',
        clientId,
        remoteAddress: '127.0.0.1',
        count: 1,
      } as AuditDraft);
    }
  };
  return { clock, window, written, log, refuse };
}

describe('the window of refusals', () => {
  it('hears every refusal and hands each on', async () => {
    const { window, written, log, refuse } = lab();
    await refuse(MIN);
    log.refusedEarly({ code: 'unauthenticated' } as AuditDraft);
    expect(written).toHaveLength(MIN + 1);
    expect(window.repeated()).toMatchObject([{ count: MIN, record: { clientId: 'zombie' } }]);
  });

  it('counts by client, resource and code, and only what a client gets that does not know its lease is over', async () => {
    const { window, refuse } = lab();
    await refuse(MIN - 1);
    await refuse(MIN - 1, 'stale_token', 'other');
    await refuse(MIN - 1, 'stale_token', 'zombie', 'other');
    await refuse(MIN - 1, 'lease_ended');
    await refuse(10 * MIN, 'resource_locked');
    await refuse(10 * MIN, 'precondition_failed');
    expect(window.repeated()).toEqual([]);
  });

  it('forgets who has given up, and does not forget who goes on', async () => {
    const { clock, window, refuse } = lab();
    await refuse(MIN);
    clock.advance(WINDOW);
    await refuse(1);
    expect(window.repeated()).toMatchObject([{ count: MIN + 1, firstAt: '2026-01-01T00:00:00.000Z' }]);
    clock.advance(WINDOW);
    await refuse(1);
    expect(window.repeated()).toEqual([]);
    await refuse(MIN);
    clock.advance(2 * WINDOW);
    expect(window.repeated()).toEqual([]);
  });

  it('stays bounded, and shows the most persistent first', async () => {
    const { window, refuse } = lab();
    await refuse(MIN, 'stale_token', 'first');
    for (let i = 0; i < LIMITS.refusalsRepeatedKeysMax - 1; i += 1) await refuse(1, 'stale_token', `client ${i}`);
    await refuse(2 * MIN, 'stale_token', 'last');
    expect(window.repeated().map(({ record }) => record.clientId)).toEqual(['last']);
  });
});

describe('a finding about repeated refusals', () => {
  it('has the same id while it grows', async () => {
    const { window, refuse } = lab();
    await refuse(MIN);
    const [before] = repeatedRefusals(window.repeated());
    await refuse(MIN);
    const [after] = repeatedRefusals(window.repeated());
    expect(after?.finding.id).toBe(before?.finding.id);
    expect(after?.finding).toMatchObject({
      code: 'refused_again_and_again',
      resource: 'v/file',
      evidence: { count: 2 * MIN, code: 'stale_token' },
      fix: null,
    });
  });
});
