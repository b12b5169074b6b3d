import { once } from 'node:events';
import { credentials, type ServiceError } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Certificates } from '../support/certificates.ts';
import { newDirectory } from '../support/gateway-settings.ts';
import { detailsOf, type GrpcLockClient, refusal } from '../support/grpc-client.ts';
import { type GrpcGateway, startGrpc } from '../support/grpc-gateway.ts';
import { bearerOf, principalsFile } from '../support/volumes-gateway.ts';

/** Who may call what over gRPC: the principals, roles, scopes and records of HTTP. */

const AUTH = principalsFile([
  { name: 'reader', roles: ['reader'] },
  { name: 'writer', roles: ['writer'] },
  { name: 'rival', roles: ['writer'] },
  { name: 'clerk', roles: ['writer'], scopes: ['v/in'] },
  { name: 'auditor', roles: ['auditor'] },
  { name: 'admin', roles: ['admin'] },
  { name: 'batch-host', roles: ['writer'] },
]);

interface AuditRow {
  readonly code: string;
  readonly principal: string | null;
  readonly path: string | null;
  readonly status: number;
  readonly count: number;
  readonly [name: string]: unknown;
}

async function audit(gateway: GrpcGateway, query: Readonly<Record<string, string>>): Promise<AuditRow[]> {
  const answer = await fetch(`${gateway.process.url}/v1/audit?${new URLSearchParams(query)}`, {
    headers: { authorization: `Bearer ${bearerOf('auditor')}` },
  });
  return ((await answer.json()) as { records: AuditRow[] }).records;
}

describe('bearer tokens', () => {
  let gateway: GrpcGateway;
  const as = (name: string): GrpcLockClient => gateway.client({ bearer: bearerOf(name) });

  beforeAll(async () => {
    gateway = await startGrpc({ auth: AUTH });
  });
  afterAll(() => gateway.stop());

  it('without valid credentials every method is UNAUTHENTICATED, and its lease refusals are counted by address', async () => {
    const nobody = gateway.client();
    const bad = gateway.client({ bearer: bearerOf('nobody') });
    for (const one of [nobody, bad]) {
      expect(await refusal(one.acquire({ resource_path: 'v/a' }))).toBe('UNAUTHENTICATED unauthenticated');
      expect(await refusal(one.renew({ lease_id: 'x' }))).toBe('UNAUTHENTICATED unauthenticated');
      expect(await refusal(one.release({ lease_id: 'x' }))).toBe('UNAUTHENTICATED unauthenticated');
      expect(await refusal(one.lock('v/a'))).toBe('UNAUTHENTICATED unauthenticated');
      expect(await refusal(once(one.watch({ resource_path: 'v/a' }), 'data'))).toBe('UNAUTHENTICATED unauthenticated');
      expect(await refusal(once(one.keepAlive(), 'data'))).toBe('UNAUTHENTICATED unauthenticated');
    }
    const records = await audit(gateway, { code: 'unauthenticated', action: 'lease_refuse' });
    expect(records.length).toBeGreaterThan(0);
    for (const record of records) expect(record).toMatchObject({ principal: null, remote_address: '127.0.0.1', status: 401 });
    expect(records.reduce((sum, { count }) => sum + count, 0)).toBe(8);
  });

  it('two tokens are no token', async () => {
    const metadata = { authorization: `Bearer ${bearerOf('writer')}, Bearer ${bearerOf('admin')}` };
    expect(await refusal(gateway.client().acquire({ resource_path: 'v/a' }, { metadata }))).toBe('UNAUTHENTICATED unauthenticated');
  });

  it('roles are those of the HTTP routes, and a refusal is in the audit log with principal and resource', async () => {
    const forbidden = 'PERMISSION_DENIED forbidden';
    for (const name of ['reader', 'auditor']) {
      expect(await refusal(as(name).acquire({ resource_path: 'v/a', client_id: 'label' }))).toBe(forbidden);
      expect((await as(name).lock('v/a')).queue_length).toBe(0);
      expect(await refusal(once(as(name).keepAlive(), 'data'))).toBe(forbidden);
    }
    for (const name of ['writer', 'admin']) {
      const held = await as(name).acquire({ resource_path: 'v/a' });
      expect(held.acquired).toBe(true);
      await as(name).release({ lease_id: held.lease_id });
    }
    // Newest first: a heartbeat is refused as over HTTP, too, and names nothing.
    const refused = { action: 'lease_refuse', outcome: 'rejected', status: 403, count: 1 };
    expect(await audit(gateway, { principal: 'reader', code: 'forbidden' })).toMatchObject([
      { ...refused, volume: null, path: null, client_id: null },
      { ...refused, volume: 'v', path: 'a', client_id: 'label' },
    ]);
    const metadata = { 'x-client-id': 'in-metadata' };
    expect(await refusal(as('reader').acquire({ resource_path: 'v/b' }, { metadata }))).toBe(forbidden);
    expect(await audit(gateway, { principal: 'reader', path: 'b' })).toMatchObject([{ ...refused, client_id: 'in-metadata' }]);
    // What got in and then said nothing of use is a refusal as well; the end of a stream is none.
    const stream = as('writer').keepAlive();
    stream.write({ session_ids: [] });
    expect(await refusal(once(stream, 'data'))).toBe('INVALID_ARGUMENT invalid_request');
    as('writer').keepAlive().end();
    expect(await audit(gateway, { principal: 'writer', action: 'lease_refuse' })).toMatchObject([{ code: 'invalid_request', status: 400 }]);
  });

  it('scopes bound every name, and what is refused for them is recorded', async () => {
    const clerk = as('clerk');
    const held = await clerk.acquire({ resource_path: 'v/in/a' });
    expect(held.acquired).toBe(true);
    for (const path of ['v/out', 'v/inside', '/locks/v/out']) {
      expect(await refusal(clerk.acquire({ resource_path: path }))).toBe('PERMISSION_DENIED forbidden');
      expect(await refusal(clerk.lock(path))).toBe('PERMISSION_DENIED forbidden');
      expect(await refusal(once(clerk.watch({ resource_path: path }), 'data'))).toBe('PERMISSION_DENIED forbidden');
    }
    expect((await audit(gateway, { principal: 'clerk', code: 'forbidden' })).map(({ path }) => path).sort()).toEqual(['inside', 'out', 'out']);
    await clerk.release({ lease_id: held.lease_id });
  });

  it('a lease belongs to its principal: nobody else renews it, or releases it by its id or its token', async () => {
    const held = await as('writer').acquire({ resource_path: 'v/private' });
    const rival = as('rival');
    for (const act of [
      rival.renew({ lease_id: held.lease_id }),
      rival.release({ lease_id: held.lease_id }),
      rival.release({ resource_path: 'v/private', fencing_token: held.fencing_token }),
    ]) {
      expect(await refusal(act)).toBe('PERMISSION_DENIED not_lease_owner');
    }
    expect(await audit(gateway, { principal: 'rival', code: 'not_lease_owner', token: held.fencing_token })).toHaveLength(1);
    expect(await as('writer').release({ resource_path: 'v/private', fencing_token: held.fencing_token })).toEqual({ released: true });
  });

  it('a session of somebody else is not renewed, and its id is no secret spoilt', async () => {
    const held = await as('writer').acquire({ resource_path: 'v/kept' });
    const stream = as('rival').keepAlive();
    stream.write({ session_ids: [held.session_id] });
    const [answer] = await once(stream, 'data');
    expect(answer).toEqual({ session_id: held.session_id, expires_in_ms: '0', lost_lease_ids: [], reason: 'forbidden' });
    stream.end();
    await as('writer').release({ lease_id: held.lease_id });
  });

  it('lease and session ids are in no record and in no log', async () => {
    const held = await as('writer').acquire({ resource_path: 'v/secret' });
    await as('writer').renew({ lease_id: held.lease_id });
    await refusal(as('rival').renew({ lease_id: held.lease_id }));
    await as('writer').release({ lease_id: held.lease_id });
    const shown = `${JSON.stringify(await audit(gateway, { limit: '1000' }))}${gateway.process.log}${gateway.process.stderr}`;
    for (const secret of [held.lease_id, held.session_id, bearerOf('writer')]) expect(shown).not.toContain(secret);
  });

  it('health and reflection need no credentials', async () => {
    expect(await gateway.client().health('')).toEqual({ status: 'SERVING' });
  });
});

describe('the rate limit', () => {
  it('is per principal, tells when to come again, and is counted in the audit log', async () => {
    const gateway = await startGrpc({ auth: AUTH, environment: { FENCEGATE_RATE_LIMIT_PER_SECOND: '2' } });
    try {
      const client = gateway.client({ bearer: bearerOf('writer') });
      const results = await Promise.all(
        Array.from({ length: 20 }, () => client.acquire({ resource_path: 'v/a' }).catch((error: ServiceError) => error)),
      );
      const limited = results.filter((result) => result instanceof Error);
      expect(limited.length).toBeGreaterThan(0);
      expect(await refusal(Promise.reject(limited[0]))).toBe('RESOURCE_EXHAUSTED rate_limited');
      expect(detailsOf(limited[0]).map(({ type }) => type)).toEqual(['google.rpc.ErrorInfo', 'google.rpc.RetryInfo']);
    } finally {
      await gateway.stop();
    }
  });
});

describe('TLS', () => {
  let certificates: Certificates;
  let gateway: GrpcGateway;
  let mutual: GrpcGateway;

  beforeAll(async () => {
    const directory = await newDirectory();
    certificates = new Certificates(directory);
    for (const authority of ['ca', 'other-ca']) certificates.authority(authority);
    certificates.issue('server', 'localhost', 'ca');
    certificates.issue('batch', 'batch-host', 'ca');
    certificates.issue('stranger', 'stranger', 'ca');
    certificates.issue('forged', 'batch-host', 'other-ca');
    const files = { FENCEGATE_TLS_CERT: certificates.file('server.crt'), FENCEGATE_TLS_KEY: certificates.file('server.key') };
    gateway = await startGrpc({ auth: AUTH, environment: files });
    mutual = await startGrpc({ auth: AUTH, environment: { ...files, FENCEGATE_TLS_CLIENT_CA: certificates.file('ca.crt') } });
  });
  afterAll(() => Promise.all([gateway.stop(), mutual.stop()]));

  const trusting = (own?: string) =>
    credentials.createSsl(
      Buffer.from(certificates.pem('ca.crt')),
      own === undefined ? null : Buffer.from(certificates.pem(`${own}.key`)),
      own === undefined ? null : Buffer.from(certificates.pem(`${own}.crt`)),
    );

  it('serves who trusts the certificate, and nobody in the clear', async () => {
    const held = await gateway.client({ credentials: trusting(), bearer: bearerOf('writer') }).acquire({ resource_path: 'v/a' });
    expect(held.acquired).toBe(true);
    expect(await refusal(gateway.client({ bearer: bearerOf('writer') }).lock('v/a'))).toMatch(/^UNAVAILABLE/);
    const others = credentials.createSsl(Buffer.from(certificates.pem('other-ca.crt')));
    expect(await refusal(gateway.client({ credentials: others, bearer: bearerOf('writer') }).lock('v/a'))).toMatch(/^UNAVAILABLE/);
  });

  it('a client certificate names the principal; without one, or with a forged one, there is no connection', async () => {
    const batch = mutual.client({ credentials: trusting('batch') });
    expect((await batch.acquire({ resource_path: 'v/a' })).acquired).toBe(true);
    expect(await refusal(mutual.client({ credentials: trusting('stranger') }).lock('v/a'))).toBe('UNAUTHENTICATED unauthenticated');
    for (const own of [undefined, 'forged']) expect(await refusal(mutual.client({ credentials: trusting(own) }).lock('v/a'))).toMatch(/^UNAVAILABLE/);
  });

  it('a bearer token that is sent decides, not the certificate', async () => {
    const reader = mutual.client({ credentials: trusting('batch'), bearer: bearerOf('reader') });
    expect(await refusal(reader.acquire({ resource_path: 'v/b' }))).toBe('PERMISSION_DENIED forbidden');
    const wrong = mutual.client({ credentials: trusting('batch'), bearer: bearerOf('nobody') });
    expect(await refusal(wrong.acquire({ resource_path: 'v/b' }))).toBe('UNAUTHENTICATED unauthenticated');
  });
});
