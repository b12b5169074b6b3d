import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { readAuditKeys, readSigningKeys } from '../../../src/config/secret-files.ts';

const directory = mkdtempSync(join(tmpdir(), 'fencegate-keys-'));
const key = 'k'.repeat(32);

function configWith(content: string) {
  writeFileSync(join(directory, 'key'), content);
  writeFileSync(join(directory, 'gate.yaml'), 'signing_keys: [{ id: one, file: key }]\naudit: { key_file: key }\n');
  return loadConfig({ FENCEGATE_CONFIG: 'gate.yaml' }, directory);
}

describe('key files', () => {
  it('hold the bytes of the key, with or without a line break behind them', () => {
    for (const content of [key, `${key}\n`]) {
      const config = configWith(content);
      expect(readSigningKeys(config)).toEqual([{ id: 'one', secret: Buffer.from(key) }]);
      expect(readAuditKeys(config)).toEqual([Buffer.from(key)]);
    }
  });

  it('with a key that could be guessed are refused', () => {
    const config = configWith('short\n');
    expect(() => readSigningKeys(config)).toThrow(/at least 32 bytes, this one has 5/);
    expect(() => readAuditKeys(config)).toThrow(/at least 32 bytes/);
  });

  it('never become part of the configuration object', () => {
    expect(JSON.stringify(configWith(key))).not.toContain(key);
  });
});
