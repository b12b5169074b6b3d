import { describe, expect, it } from 'vitest';
import type { ExaminedVolume } from '../../../src/doctor/doctor-deps.ts';
import { nearlyFull, slowVolumes, startFindings, unknownOutcomes } from '../../../src/doctor/volume-findings.ts';
import { refuse } from '../../../src/domain/errors.ts';
import type { Intent, Settlement } from '../../../src/domain/intent.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import type { Volume } from '../../../src/domain/volume.ts';
import type { VolumeSpace } from '../../../src/domain/volume-space.ts';
import { createSettleLoop } from '../../../src/gateway/settle-loop.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { anybody, policyOf } from '../../support/lock-lab.ts';

function volume(name: string, changes: Partial<ExaminedVolume> = {}): ExaminedVolume {
  return {
    name,
    policy: policyOf(name, { path: `/srv/${name}` }),
    folds: false,
    findings: [],
    state: () => ({ state: 'open', reason: null }),
    space: () => null,
    locate: async (resource) => ({ resource, parent: null, missing: [], close: () => undefined }),
    look: async () => null,
    removeUnknownDirectory: async () => false,
    ...changes,
  };
}

const never = new Promise<never>(() => undefined);

describe('asking the volumes', () => {
  it('finds one that takes a second, one that refuses, and one that never answers, and asks the others meanwhile', async () => {
    const clock = new FakeClock();
    const later = (ms: number): Promise<null> => new Promise((resolve) => void clock.after(ms, () => resolve(null)));
    const volumes = [
      volume('well', { look: () => later(LIMITS.volumeSlowMs - 1) }),
      volume('slow', { look: () => later(LIMITS.volumeSlowMs) }),
      volume('refusing', { look: () => Promise.reject(refuse('volume_unavailable', 'the breaker is open')) }),
      volume('hung', { look: () => never }),
      volume('closed', { state: () => ({ state: 'closed', reason: 'of somebody else' }), look: () => never }),
      volume('locks', { policy: policyOf('locks', { path: null }), state: () => ({ state: 'lock_only', reason: null }), look: () => never }),
    ];
    const lanes = new Map([['hung', { inFlight: 8, queued: 3, breaker: 'open' }]]);
    const asked = slowVolumes({ clock, volumes, lanes });
    await clock.advanceAsync(LIMITS.doctorCheckMsMax);
    const { found, answering } = await asked;
    expect(
      found.map(({ finding: { code, severity, evidence } }) => [code, severity, evidence['volume'], evidence['problem'], evidence['in_flight']]),
    ).toEqual([
      ['volume_slow', 'warning', 'slow', null, null],
      ['volume_hung', 'error', 'refusing', 'volume_unavailable', null],
      ['volume_hung', 'error', 'hung', 'it did not answer in time', 8],
    ]);
    expect(answering.map(({ name }) => name)).toEqual(['well', 'slow']);
  });
});

describe('room on the volumes', () => {
  const space = { totalBytes: 1_000, freeBytes: 500, totalInodes: 100, freeInodes: 50 };
  const foundFor = (changes: Partial<VolumeSpace>): string[] =>
    nearlyFull([volume('v', { space: () => ({ ...space, ...changes }) })]).map(({ finding: { code, severity } }) => `${code} ${severity}`);

  it('F29: little left of bytes or of inodes is told; none is, where they are not counted or not known', () => {
    expect(foundFor({})).toEqual([]);
    expect(foundFor({ freeBytes: 49 })).toEqual(['volume_nearly_full warning']);
    expect(foundFor({ freeBytes: 50 })).toEqual([]);
    expect(foundFor({ freeInodes: 4 })).toEqual(['volume_nearly_full warning']);
    expect(foundFor({ totalInodes: null, freeInodes: null })).toEqual([]);
    expect(nearlyFull([volume('v')])).toEqual([]);
  });
});

describe('what volumes found at their start', () => {
  it('is told with what to do about it, and without a fix where none is safe', () => {
    const findings = [
      { code: 'other_journal', severity: 'error', volume: 'v', resource: null, evidence: 'another journal' },
      { code: 'intent_unknown', severity: 'warning', volume: 'v', resource: 'v/file', evidence: 'neither before nor staged' },
    ] as const;
    const found = startFindings([volume('v', { findings })]);
    expect(found.map(({ finding, remedy }) => [finding.code, finding.severity, finding.resource, remedy])).toEqual([
      ['other_journal', 'error', null, null],
      ['intent_unknown', 'warning', 'v/file', null],
    ]);
    expect(found.map(({ finding }) => finding.evidence['how'])).toEqual([
      expect.stringContaining('rebase'),
      expect.stringContaining('/v1/operations/'),
    ]);
  });
});

describe('a resource that is closed by an unknown outcome', () => {
  function lab() {
    const clock = new FakeClock();
    const loop = createSettleLoop(clock, () => undefined);
    let settlement: Settlement = 'unknown';
    let endApply: () => void = () => undefined;
    const running = new Promise<void>((resolve) => {
      endApply = resolve;
    });
    const recorded: string[] = [];
    let left = 0;
    loop.adopt({
      volume: { name: 'v', settle: async () => ({ settlement, after: null }) } as unknown as Volume,
      intents: [{ operationId: 'op-1', resource: { volume: 'v', path: 'file', name: 'v/file', key: 'v/file' } } as Intent],
      running,
      known: null,
      record: async (outcome) => void recorded.push(outcome),
      left: () => {
        left += 1;
      },
    });
    return { loop, clock, recorded, endApply: () => endApply(), settles: (to: Settlement) => (settlement = to), left: () => left };
  }

  it('is found, and its fix looks at once; as long as the volume cannot tell, it stays', async () => {
    const { loop, recorded, endApply, settles, left, clock } = lab();
    const [found] = unknownOutcomes(loop);
    expect(found?.finding).toMatchObject({
      code: 'outcome_unknown',
      severity: 'error',
      resource: 'v/file',
      evidence: { operation_id: 'op-1' },
      fix: expect.any(String),
    });
    expect(found?.remedy?.subject).toEqual({ volume: 'v', path: 'file' });
    // The apply still runs: to look now would prove nothing.
    settles('committed');
    expect(await found?.remedy?.carryOut(anybody)).toEqual(['operation op-1 still cannot be told']);
    settles('unknown');
    endApply();
    await settle();
    expect(await found?.remedy?.carryOut(anybody)).toEqual(['operation op-1 still cannot be told']);
    expect([recorded, left()]).toEqual([[], 0]);
    settles('aborted');
    expect(await found?.remedy?.carryOut(anybody)).toEqual(['operation op-1 is settled']);
    expect([recorded, left(), unknownOutcomes(loop)]).toEqual([['aborted'], 1, []]);
    expect(await loop.settleNow('op-1')).toBe('none');
    await clock.advanceAsync(10 * LIMITS.settleRetryMs);
    expect(recorded).toEqual(['aborted']);
  });

  it('that only the next start can tell is found, is never looked at, and has no fix', async () => {
    const { loop, recorded, clock, endApply, settles } = lab();
    endApply();
    settles('committed');
    await clock.advanceAsync(LIMITS.settleRetryMs);
    const untold = { volume: { name: 'v' } as Volume, intents: [{ operationId: 'op-2', resource: { name: 'v/b' } } as Intent] };
    loop.leaveToNextStart(untold);
    await clock.advanceAsync(10 * LIMITS.settleRetryMs);
    expect(await loop.settleNow('op-2')).toBe('none');
    expect(unknownOutcomes(loop).map(({ finding, remedy }) => [finding.resource, finding.evidence, remedy])).toEqual([
      ['v/b', { operation_id: 'op-2', volume: 'v', how: expect.stringContaining('start the gateway again') }, null],
    ]);
    expect(recorded).toEqual(['committed']);
  });

  it('is looked at once even when fix and timer come together', async () => {
    const { loop, recorded, endApply, settles, clock } = lab();
    endApply();
    await settle();
    settles('committed');
    const [one, two] = [loop.settleNow('op-1'), loop.settleNow('op-1')];
    clock.advance(LIMITS.settleRetryMs);
    expect(await Promise.all([one, two])).toEqual(['settled', 'settled']);
    expect(recorded).toEqual(['committed']);
  });
});
