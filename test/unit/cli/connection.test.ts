import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { clientEnvironment, clientLabel, openClient } from '../../../src/cli/connection.ts';
import { UsageError } from '../../../src/cli/usage-error.ts';

describe('where a command finds its gateway, and as whom', () => {
  it('always names the gateway, so that a child of exec can reach it', () => {
    expect(clientEnvironment({}, {})).toEqual({ FENCEGATE_URL: 'http://127.0.0.1:8080' });
    expect(clientEnvironment({ FENCEGATE_URL: '' }, {})['FENCEGATE_URL']).toBe('http://127.0.0.1:8080');
    expect(clientEnvironment({ FENCEGATE_URL: 'https://a' }, {})['FENCEGATE_URL']).toBe('https://a');
    expect(clientEnvironment({ FENCEGATE_URL: 'https://a' }, { gateway: 'https://b' })['FENCEGATE_URL']).toBe('https://b');
  });

  it('refuses what is no URL', () => {
    for (const gateway of ['nonsense', 'ftp://a', '127.0.0.1:8080']) expect(() => clientEnvironment({}, { gateway })).toThrow(UsageError);
  });

  it('names the variables of a certificate without its key', async () => {
    const half = { FENCEGATE_URL: 'https://a', FENCEGATE_CERT_FILE: 'own.crt' };
    await expect(openClient(half, {})).rejects.toThrow(new UsageError('FENCEGATE_CERT_FILE and FENCEGATE_KEY_FILE belong together'));
  });

  it('takes the bearer token from a file, without the line end that editors add', () => {
    const directory = mkdtempSync(join(tmpdir(), 'fencegate-token-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, 'token'), 'secret\n');
    const there = clientEnvironment({ FENCEGATE_AUTH_TOKEN: 'other' }, { authTokenFile: join(directory, 'token') });
    expect(there['FENCEGATE_AUTH_TOKEN']).toBe('secret');
    expect(() => clientEnvironment({}, { authTokenFile: join(directory, 'missing') })).toThrow(/missing .* cannot be read \(ENOENT\)/);
  });

  it('is known to others by user and host, or as it was told', () => {
    expect(clientLabel({})).toMatch(/^(.+@)?.+$/);
    expect(clientLabel({ clientId: 'night-batch' })).toBe('night-batch');
  });
});
