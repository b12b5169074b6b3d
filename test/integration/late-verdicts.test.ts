import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GatewayClient, jsonOf, type LeaseJson } from '../support/gateway-client.ts';
import { head } from '../support/raw-request.ts';
import { bearerOf, principalsFile, startVolumes, type VolumesGateway } from '../support/volumes-gateway.ts';

/** A write whose lease ends while its body is on the way: it is refused as it would be on its headers, by the facts of the end. */

const PRINCIPALS = [
  { name: 'writer', roles: ['writer'] },
  { name: 'rival', roles: ['writer'] },
  { name: 'admin', roles: ['admin'] },
];

let open: VolumesGateway;
let guarded: VolumesGateway;
let files = 0;

beforeAll(async () => {
  open = await startVolumes();
  guarded = await startVolumes({ auth: principalsFile(PRINCIPALS) });
});
afterAll(() => Promise.all([open.stop(), guarded.stop()]));

interface Late {
  readonly name: string;
  readonly held: LeaseJson;
  readonly body: Record<string, unknown>;
  readonly record: Record<string, unknown> | undefined;
  readonly mark: string;
}

const as = (gateway: VolumesGateway, name: string | null): GatewayClient => (name === null ? gateway.client : gateway.client.as(bearerOf(name)));

/** Sends half a body under a token, lets `meanwhile` happen, sends the rest. */
async function late(
  gateway: VolumesGateway,
  who: { readonly writer: string | null; readonly admin: string | null },
  meanwhile: (held: LeaseJson, name: string) => Promise<unknown>,
): Promise<Late> {
  files += 1;
  const name = `v/late-${files}`;
  const held = await as(gateway, who.writer).lease(name);
  const requestId = randomUUID();
  const connection = gateway.raw();
  const credentials = who.writer === null ? [] : [`Authorization: Bearer ${bearerOf(who.writer)}`];
  const fields = [`X-Fencing-Token: ${held.fencing_token}`, `X-Request-Id: ${requestId}`, 'Expect: 100-continue', 'Content-Length: 10'];
  connection.send(head(`PUT /v1/files/${name}`, ...credentials, ...fields));
  // The body is asked for: the write was admitted.
  await connection.until(() => connection.received.includes('100 Continue'));
  connection.send('later');
  await meanwhile(held, name);
  connection.send('later');
  const answer = await connection.answer();
  expect(answer.status).toBe(412);
  const fence = jsonOf(await as(gateway, who.admin).send('GET', `/v1/admin/fences/${name}`));
  const [record] = await as(gateway, who.admin).audit({ request_id: requestId });
  return { name, held, body: JSON.parse(answer.body) as Record<string, unknown>, record, mark: String(fence['high_water_mark']) };
}

const nobody = { writer: null, admin: null };
const breakLock = (client: GatewayClient, resource: string) => client.post('/v1/admin/locks/break', { resource, reason: 'test', grace_ms: 0 });

describe('a slow write under a token whose lease ends meanwhile', () => {
  it.each<[string, (held: LeaseJson, name: string) => Promise<unknown>]>([
    ['by a release and a new grant', async (held, name) => open.client.release(held).then(() => open.client.lease(name))],
    ['by a break', (_held, name) => breakLock(open.client, name)],
    ['by a release and a token-less write', async (held, name) => open.client.release(held).then(() => open.client.put(name, 'of somebody else'))],
  ])('%s is stale: body and record have the token and the mark that it met', async (_how, meanwhile) => {
    const { held, body, record, mark } = await late(open, nobody, meanwhile);
    expect(BigInt(mark)).toBeGreaterThan(BigInt(held.fencing_token));
    expect(body).toMatchObject({ code: 'stale_token', presented_token: held.fencing_token, high_water_mark: mark });
    expect(body).not.toHaveProperty('newer_token_exists');
    expect(record).toMatchObject({ outcome: 'rejected', code: 'stale_token', fencing_token: held.fencing_token, high_water_mark: mark });
  });

  it('by a release alone is told that its lease ended', async () => {
    const { held, body, record } = await late(open, nobody, (one) => open.client.release(one));
    expect(body).toMatchObject({ code: 'lease_ended', reason: 'released' });
    expect(record).toMatchObject({ code: 'lease_ended', fencing_token: held.fencing_token, high_water_mark: held.fencing_token });
  });

  it('with authentication shows the mark to its owner and to administrators only; the record has it in any case', async () => {
    const told = async (writer: string, next: string) => {
      const met = await late(guarded, { writer, admin: 'admin' }, async (held, name) => {
        await as(guarded, writer).release(held);
        await as(guarded, next).lease(name);
      });
      expect(met.record).toMatchObject({ code: 'stale_token', high_water_mark: met.mark });
      const { code, high_water_mark: shown, newer_token_exists: newer } = met.body;
      return { code, isShown: shown === met.mark, newer };
    };
    expect(await told('writer', 'rival')).toEqual({ code: 'stale_token', isShown: false, newer: true });
    expect(await told('writer', 'writer')).toEqual({ code: 'stale_token', isShown: true, newer: undefined });
    expect(await told('admin', 'rival')).toEqual({ code: 'stale_token', isShown: true, newer: undefined });
  });
});
