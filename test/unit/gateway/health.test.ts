import { describe, expect, it } from 'vitest';
import type { CoordinatorReadiness } from '../../../src/domain/health.ts';
import { createHealth } from '../../../src/gateway/health.ts';
import { lockOnly } from '../../../src/storage/life/closed-volume.ts';
import { testPolicy } from '../../support/temp-volume.ts';

const volume = lockOnly(testPolicy({ path: null }));
const CONNECTED: CoordinatorReadiness = { kind: 'zookeeper', state: 'connected', sessionMs: 15_000, proofAgeMs: 10, reason: null };

function readyWith(coordinator: Partial<CoordinatorReadiness>): boolean {
  const health = createHealth({
    volumes: { get: () => volume, policy: () => volume.policy, all: () => [volume] },
    journal: { healthy: true, head: () => ({ seq: 0, hash: '' }) },
    coordinator: () => ({ ...CONNECTED, ...coordinator }),
    isDraining: () => false,
    distrust: () => null,
  });
  return health.readiness().ready;
}

describe('readiness', () => {
  it('needs a coordinator that grants: without one no volume can be written', () => {
    expect(readyWith({})).toBe(true);
    expect(readyWith({ state: 'reconnected' })).toBe(true);
    expect(readyWith({ state: 'suspended' })).toBe(false);
    expect(readyWith({ state: 'lost' })).toBe(false);
    expect(readyWith({ reason: 'it was put back' })).toBe(false);
  });
});
