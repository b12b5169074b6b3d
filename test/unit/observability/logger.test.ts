import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLogger, type Logger } from '../../../src/observability/logger.ts';

const LEASE_ID = 'q7Yb0mJxT1l4r8Zc2VtGNw';
const TOKEN = 'Rk9SIFRFU1RTIE9OTFkgLSBub3QgYSByZWFsIHRva2Vu';

function logged(run: (logger: Logger) => void): string {
  const lines: string[] = [];
  run(createLogger('trace', { write: (line) => void lines.push(line) }));
  return lines.join('');
}

const ways: [string, (logger: Logger, secret: string) => void][] = [
  ['a member', (logger, secret) => logger.info({ lease_id: secret })],
  ['a member in TypeScript spelling', (logger, secret) => logger.info({ leaseId: secret })],
  ['a nested member', (logger, secret) => logger.info({ request: { body: { session: { session_id: secret } } } })],
  ['a deeply nested member', (logger, secret) => logger.info({ a: { b: { c: { d: { e: { f: { sessionId: secret } } } } } } })],
  ['a deeply nested member with quotes in it', (logger, secret) => logger.info({ a: { b: { c: { password: `a "quoted\\ ${secret}` } } } })],
  ['nested bytes', (logger, secret) => logger.info({ tls: { files: { key: { pem: [secret] } } } })],
  ['nested keys by name', (logger, secret) => logger.info({ a: { signingKeys: { k1: { bytes: secret }, k2: { bytes: secret } } } })],
  ['a list of members', (logger, secret) => logger.info({ leases: [{ lease_id: secret }, { lease_id: secret }] })],
  ['a list of ids', (logger, secret) => logger.info({ body: { session_ids: [secret, secret] } })],
  ['a header', (logger, secret) => logger.info({ headers: { 'x-lease-id': secret, authorization: `Bearer ${secret}` } })],
  ['raw headers', (logger, secret) => logger.info({ raw: `X-Lease-Id: ${secret}\r\nAuthorization: Bearer ${secret}` })],
  ['a message', (logger, secret) => logger.info(`sent Authorization: Bearer ${secret}`)],
  ['a body as text', (logger, secret) => logger.info({ body: JSON.stringify({ resource: 'v/a', lease_id: secret }) })],
  ['a body as text in text', (logger, secret) => logger.info({ body: JSON.stringify(JSON.stringify({ lease_id: secret })) })],
  ['a URL', (logger, secret) => logger.info({ url: `/v1/leases/${secret}/renew?wait_ms=1` })],
  ['the URL of a session', (logger, secret) => logger.info({ url: `/v1/sessions/${secret}/watch` })],
  ['an error', (logger, secret) => logger.error({ error: new Error(`GET /v1/leases/${secret}: 404`) }, 'failed')],
  ['an error with a cause', (logger, secret) => logger.error(new Error('failed', { cause: new Error(`Bearer ${secret}`) }))],
  ['a child logger', (logger, secret) => logger.child({ lease_id: secret }).info('hello')],
  ['a format argument', (logger, secret) => logger.info('url %s', `/v1/leases/${secret}`)],
  ['a signed token', (logger, secret) => logger.info({ sent: `4103.lr_abc.exclusive.k1.${secret}` })],
];

describe('a secret never reaches the log', () => {
  it.each(ways)('as %s', (_, log) => {
    const text = logged((logger) => {
      log(logger, LEASE_ID);
      log(logger, TOKEN);
    });
    expect(text).not.toContain(LEASE_ID);
    expect(text).not.toContain(TOKEN);
    expect(text).toContain('[redacted]');
  });

  it('whatever its letters are', () => {
    const id = fc.stringMatching(/^[A-Za-z0-9_-]{22,43}$/);
    fc.assert(
      fc.property(id, fc.constantFrom(...ways), (secret, [, log]) => {
        expect(logged((logger) => log(logger, secret))).not.toContain(secret);
      }),
    );
  });
});

describe('a log line', () => {
  it('keeps the words "a bearer token", which are none', () => {
    const text = logged((logger) => logger.info({ detail: 'needs a valid bearer token or client certificate' }, 'a bearer token'));
    expect(text).toContain('bearer token or client');
    expect(text).not.toContain('[redacted]');
  });

  it('is one JSON object with level, time and message, and keeps what is no secret', () => {
    const text = logged((logger) =>
      logger.warn({ lease_ref: 'lr_1', fencing_token: '4103', request_id: 'r-1', url: '/v1/sessions/heartbeats' }, 'slow'),
    );
    expect(JSON.parse(text)).toEqual({
      level: 'warn',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      lease_ref: 'lr_1',
      fencing_token: '4103',
      request_id: 'r-1',
      url: '/v1/sessions/heartbeats',
      message: 'slow',
    });
  });

  it('stays one line of JSON after a secret was taken out', () => {
    for (const [, log] of ways)
      for (const line of logged((logger) => log(logger, LEASE_ID))
        .trimEnd()
        .split('\n'))
        expect(() => JSON.parse(line)).not.toThrow();
  });
});
