import { describe, expect, it } from 'vitest';
import type { CoordinatorReadiness, Readiness } from '../../../src/domain/health.ts';
import { createHealth } from '../../../src/gateway/health.ts';
import { lockOnly } from '../../../src/storage/life/closed-volume.ts';
import { testPolicy } from '../../support/temp-volume.ts';

const volume = lockOnly(testPolicy({ path: null }));
const CONNECTED: CoordinatorReadiness = { kind: 'zookeeper', state: 'connected', sessionMs: 15_000, proofAgeMs: 10, reason: null };

function readinessWith(
  coordinator: Partial<CoordinatorReadiness>,
  { reason = null, distrust = null }: { readonly reason?: string | null; readonly distrust?: string | null } = {},
): Readiness {
  const health = createHealth({
    volumes: { get: () => volume, policy: () => volume.policy, all: () => [volume] },
    journal: { healthy: reason === null, reason, head: () => ({ seq: 0, hash: '' }) },
    coordinator: () => ({ ...CONNECTED, ...coordinator }),
    isDraining: () => false,
    distrust: () => distrust,
  });
  return health.readiness();
}

const readyWith = (coordinator: Partial<CoordinatorReadiness>): boolean => readinessWith(coordinator).ready;

describe('readiness', () => {
  it('needs a coordinator that grants: without one no volume can be written', () => {
    expect(readyWith({})).toBe(true);
    expect(readyWith({ state: 'reconnected' })).toBe(true);
    expect(readyWith({ state: 'suspended' })).toBe(false);
    expect(readyWith({ state: 'lost' })).toBe(false);
    expect(readyWith({ reason: 'it was put back' })).toBe(false);
  });

  it('says why the journal takes no writes before why it is not trusted', () => {
    expect(readinessWith({}, { reason: 'full', distrust: 'restored' })).toMatchObject({ ready: false, journal: { healthy: false, reason: 'full' } });
    expect(readinessWith({}, { distrust: 'restored' })).toMatchObject({ ready: true, journal: { healthy: true, reason: 'restored' } });
    expect(readinessWith({})).toMatchObject({ ready: true, journal: { healthy: true, reason: null } });
  });
});
