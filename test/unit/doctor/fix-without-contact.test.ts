import { describe, expect, it } from 'vitest';
import { Doctor } from '../../../src/doctor/doctor.ts';
import type { CoordinatorReadiness } from '../../../src/domain/health.ts';
import { statusOf } from '../../../src/http/status.ts';
import { settle } from '../../support/fake-clock.ts';
import { anybody, resource } from '../../support/lock-lab.ts';
import { ZookeeperLab } from '../../support/zookeeper-lab.ts';

const A = resource('a');

/** A doctor of this lab, to whom contact is what the test says. */
function doctorOf(lab: ZookeeperLab) {
  const contact: { state: CoordinatorReadiness['state'] } = { state: 'connected' };
  const doctor = new Doctor({
    clock: lab.clock,
    statusOf,
    journal: lab.journal,
    refusals: lab.journal,
    refusalWindow: { repeated: () => [] },
    volumes: () => [],
    readiness: () => [],
    lanes: () => new Map(),
    locks: lab.locks.service,
    conditions: () => lab.locks.conditions(),
    endLease: (caller, leaseRef, reason) => lab.locks.endLease(caller, leaseRef, reason),
    waitFor: () => lab.locks.waitFor(),
    coordinator: () => ({ kind: 'zookeeper', state: contact.state, sessionMs: 15_000, proofAgeMs: 0, reason: null }),
    nodes: () => lab.locks.nodes(),
    removeOrphan: (node) => lab.locks.removeOrphan(node),
    unsettled: { open: () => [], settleNow: async () => 'none' },
  });
  return { doctor, contact };
}

describe('a fix of a finding that only the coordinator could show', () => {
  it('is refused as suspended while there is no contact, and 404 when it is known that there is none', async () => {
    const lab = new ZookeeperLab();
    const { doctor, contact } = doctorOf(lab);
    await lab.acquire(A, { ttlMs: 600_000 });
    lab.ensemble.create(`/locks/vol/a/_c_${'9'.repeat(32)}-x5-lock-`, new Uint8Array(), lab.client.session.id, true);
    lab.ensemble.create(`/locks/vol/a/_c_${'8'.repeat(32)}-x5-lock-`, new Uint8Array(), '0x99', true);
    void lab.acquire(A, { waitMs: 60_000, ttlMs: 600_000 });
    await settle();
    const found = (await doctor.report()).findings.find(({ code }) => code === 'node_orphaned');
    const fix = (findingId = found?.id ?? '') => doctor.fix(anybody, { findingId, dryRun: false, force: false, reason: null });
    lab.client.cut();
    contact.state = 'suspended';
    await expect(fix()).rejects.toMatchObject({ code: 'coordinator_suspended' });
    await expect(fix('lease_held_long.0')).rejects.toMatchObject({ code: 'not_found' });
    contact.state = 'lost';
    await expect(fix()).rejects.toMatchObject({ code: 'not_found' });
    lab.client.heal();
    contact.state = 'connected';
    await settle();
    expect((await fix()).steps).toEqual([expect.stringContaining('deleted')]);
    await expect(fix()).rejects.toMatchObject({ code: 'not_found' });
  });
});
