import { writeFileSync } from 'node:fs';
import { Agent } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Certificates } from '../support/certificates.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { GatewayClient, textOf, verdictOf } from '../support/gateway-client.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { bearerOf, principalsFile } from '../support/volumes-gateway.ts';

/** TLS, and mutual TLS whose certificates name principals. */

const AUTH = principalsFile([
  { name: 'batch-host', roles: ['writer', 'reader'] },
  { name: 'reader', roles: ['reader'] },
]);
let certificates: Certificates;
let directory: string;
const gateways: TestGateway[] = [];

beforeAll(async () => {
  directory = await newDirectory();
  certificates = new Certificates(directory);
  for (const authority of ['ca', 'other-ca']) certificates.authority(authority);
  certificates.issue('server', 'localhost', 'ca');
  certificates.issue('batch', 'batch-host', 'ca');
  certificates.issue('stranger', 'stranger', 'ca');
  certificates.issue('forged', 'batch-host', 'other-ca');
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  await removeDirectory(directory);
});

async function start(more: Record<string, string> = {}, auth?: string): Promise<TestGateway> {
  const environment = { FENCEGATE_TLS_CERT: certificates.file('server.crt'), FENCEGATE_TLS_KEY: certificates.file('server.key'), ...more };
  const gateway = await startGateway({ environment, ...(auth === undefined ? {} : { auth }) });
  gateways.push(gateway);
  return gateway;
}

function client(url: string, certificate: string | null, trusted = 'ca.crt'): GatewayClient {
  const own = certificate === null ? {} : { cert: certificates.pem(`${certificate}.crt`), key: certificates.pem(`${certificate}.key`) };
  return new GatewayClient(url, {}, new Agent({ connect: { ca: certificates.pem(trusted), ...own }, keepAliveTimeout: 1_000 }));
}

describe('TLS', () => {
  it('serves what HTTP serves, to clients that trust its authority only', async () => {
    const gateway = await start();
    expect(gateway.url).toMatch(/^https:/);
    const https = client(gateway.url, null);
    expect((await https.put('v/a', 'over TLS')).status).toBe(201);
    expect(textOf(await https.get('v/a'))).toBe('over TLS');
    expect((await https.put('v/a', 'x', { origin: gateway.url })).status).toBe(200);
    expect(verdictOf(await https.put('v/a', 'x', { origin: gateway.url.replace('https', 'http') }))).toBe('403 cross_origin');
    await expect(client(gateway.url, null, 'other-ca.crt').get('v/a')).rejects.toThrow(/certificate|signature/);
    await expect(new GatewayClient(gateway.url.replace('https', 'http')).get('v/a')).rejects.toThrow();
    expect((await https.get('v/a')).status).toBe(200);
    await https.close();
  });
});

describe('mutual TLS', () => {
  it('the common name of a certificate is the principal; a bearer token that is sent decides', async () => {
    const gateway = await start({ FENCEGATE_TLS_CLIENT_CA: certificates.file('ca.crt') }, AUTH);
    const batch = client(gateway.url, 'batch');
    expect((await batch.put('v/a', 'x', { 'x-request-id': 'by-certificate' })).status).toBe(201);
    expect(verdictOf(await batch.as(bearerOf('reader')).put('v/a', 'x'))).toBe('403 forbidden');
    expect(verdictOf(await batch.as('wrong').put('v/a', 'x'))).toBe('401 unauthenticated');
    expect(verdictOf(await client(gateway.url, 'stranger').put('v/a', 'x'))).toBe('401 unauthenticated');
    expect((await client(gateway.url, 'stranger').as(bearerOf('reader')).get('v/a')).status).toBe(200);
  });

  it('without a certificate, or with one of another authority, no request comes through', async () => {
    const gateway = await start({ FENCEGATE_TLS_CLIENT_CA: certificates.file('ca.crt') }, AUTH);
    for (const certificate of [null, 'forged']) await expect(client(gateway.url, certificate).get('v/a')).rejects.toThrow();
    expect((await client(gateway.url, 'batch').send('GET', '/healthz')).status).toBe(200);
  });

  it('files that do not fit together stop the start with a plain word', async () => {
    const broken = `${directory}/broken.pem`;
    writeFileSync(broken, 'no certificate');
    await expect(start({ FENCEGATE_TLS_CERT: broken })).rejects.toThrow(/FENCEGATE_TLS_CERT: .* no certificate in PEM form/);
    await expect(start({ FENCEGATE_TLS_KEY: certificates.file('batch.key') })).rejects.toThrow(/FENCEGATE_TLS_KEY: .* is not the key of the first/);
    await expect(start({ FENCEGATE_TLS_CERT: `${directory}/absent.pem` })).rejects.toThrow(/FENCEGATE_TLS_CERT/);
    await expect(start({ FENCEGATE_TLS_CLIENT_CA: certificates.file('ca.crt') })).rejects.toThrow(/FENCEGATE_AUTH_FILE/);
  });
});
