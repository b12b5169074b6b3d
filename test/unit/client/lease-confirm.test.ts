import { describe, expect, it } from 'vitest';
import { clientLab, held } from '../../support/client-lab.ts';
import { leaseAnswer, problem } from '../../support/fake-fetch.ts';

describe('a lease that is confirmed', () => {
  it('is still held when the gateway says so, without another renewal', async () => {
    const lab = clientLab();
    const lease = await held(lab);
    const before = lease.remainingMs;
    const confirmed = lease.confirm();
    await (await lab.wire.next('GET /v1/leases/')).answer(200, leaseAnswer());
    await confirmed;
    expect([lease.state, lease.remainingMs]).toEqual(['held', before]);
  });

  it.each<[string, [number, object]]>([
    ['broken', [200, leaseAnswer({ state: 'broken', reason: 'broken' })]],
    ['forgotten', problem(404, 'lease_not_found')],
  ])('is lost when the gateway has it as %s, and its signal says so', async (reason, answer) => {
    const lab = clientLab();
    const lease = await held(lab);
    const confirmed = expect(lease.confirm()).rejects.toMatchObject({ code: 'lease_lost', members: { reason, lost_by: 'gateway' } });
    await (await lab.wire.next('GET /v1/leases/')).answer(...answer);
    await confirmed;
    expect([lease.state, lease.signal.aborted]).toEqual(['lost', true]);
  });

  it('is asked about once: a gateway that is not reached leaves it as it was', async () => {
    const lab = clientLab();
    const lease = await held(lab);
    const confirmed = expect(lease.confirm()).rejects.toMatchObject({ code: 'gateway_unreachable' });
    await (await lab.wire.next('GET /v1/leases/')).cut();
    await confirmed;
    expect(lease.state).toBe('held');
  });
});
