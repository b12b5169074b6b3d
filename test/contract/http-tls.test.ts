import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildApp } from '../../src/http/app.ts';
import type { TlsPeer } from '../../src/http/http-deps.ts';
import { SystemClock } from '../../src/observability/system-clock.ts';
import { fakeDeps, principal } from '../support/http-fakes.ts';

/** Mutual TLS on a real socket, with certificates made for this run. */

let directory: string;
const pem = (name: string) => readFileSync(join(directory, name), 'utf8');
const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' });
const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

function certificate(name: string, commonName: string, authority: string): void {
  openssl('req', ...key, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${commonName}`);
  openssl(
    'x509',
    '-req',
    '-in',
    `${name}.csr`,
    '-CA',
    `${authority}.crt`,
    '-CAkey',
    `${authority}.key`,
    '-CAcreateserial',
    '-out',
    `${name}.crt`,
    '-days',
    '1',
  );
}

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'fencegate-tls-'));
  for (const authority of ['ca', 'other'])
    openssl('req', '-x509', ...key, '-keyout', `${authority}.key`, '-out', `${authority}.crt`, '-days', '1', '-subj', `/CN=${authority}`);
  certificate('server', 'localhost', 'ca');
  certificate('batch', 'batch', 'ca');
  certificate('stranger', 'batch', 'other');
});
afterAll(() => rmSync(directory, { recursive: true }));

interface Answer {
  readonly status: number;
  readonly code: string | null;
}

async function put(port: number, client: string | null, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const credentials = client === null ? {} : { cert: pem(`${client}.crt`), key: pem(`${client}.key`) };
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        path: '/v1/files/demo/a.txt',
        method: 'PUT',
        ca: pem('ca.crt'),
        servername: 'localhost',
        agent: false,
        headers: { 'content-length': Buffer.byteLength(body) },
        ...credentials,
      },
      (answer) => {
        let text = '';
        answer
          .setEncoding('utf8')
          .on('data', (chunk: string) => {
            text += chunk;
          })
          .on('end', () => {
            const { code = null } = JSON.parse(text) as { code?: string };
            resolve({ status: answer.statusCode ?? 0, code });
          });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

test('a verified client certificate names its principal; without one, or from another authority, there is no connection', async () => {
  const peers: (TlsPeer | null)[] = [];
  const deps = Object.assign(fakeDeps({ authenticated: true, tls: { cert: pem('server.crt'), key: pem('server.key'), clientCa: pem('ca.crt') } }), {
    clock: new SystemClock(),
  });
  deps.authenticate = (_headers, peer) => {
    peers.push(peer);
    return principal(peer?.commonName ?? 'nobody', ['writer']);
  };
  const app = buildApp(deps);
  await app.listen({ host: '127.0.0.1', port: 0 });
  try {
    const address = app.server.address();
    const port = address !== null && typeof address === 'object' ? address.port : 0;
    expect(await put(port, 'batch', 'hello')).toEqual({ status: 201, code: null });
    expect(peers).toEqual([{ commonName: 'batch' }]);
    expect(deps.writer.calls[0]?.envelope.caller.principal.name).toBe('batch');
    await expect(put(port, null, 'hello')).rejects.toThrow();
    await expect(put(port, 'stranger', 'hello')).rejects.toThrow();
    expect(peers).toHaveLength(1);
  } finally {
    app.server.closeAllConnections();
    await app.close();
  }
});
