import { readFileSync } from 'node:fs';
import type { Config, TlsFiles } from './config.ts';
import { ConfigError, causeOf } from './problems.ts';

/** Secrets are read when they are needed and never become part of the configuration object, which may be shown. */

/** HMAC-SHA-256 gains nothing from a longer key and loses from a shorter one. */
const KEY_BYTES_MIN = 32;

export interface TlsSecrets {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly clientCa: Buffer | null;
}

/** Throws `ConfigError`. */
export function readTls(files: TlsFiles): TlsSecrets {
  return { cert: read(files.certFile), key: read(files.keyFile), clientCa: files.clientCaFile === null ? null : read(files.clientCaFile) };
}

/** The first signs, all verify. Throws `ConfigError` for a key under 32 bytes. */
export function readSigningKeys(config: Config): { readonly id: string; readonly secret: Buffer }[] {
  return config.signingKeys.map(({ id, file }) => ({ id, secret: readKey(file) }));
}

/** `null`: the audit chain is a plain hash. Throws `ConfigError` for a key under 32 bytes. */
export function readAuditKeys(config: Config): Buffer[] {
  return config.audit.keyFile === null ? [] : [readKey(config.audit.keyFile)];
}

/** `user:password` for digest authentication. Throws `ConfigError`. */
export function readZookeeperAuth(path: string): string {
  const text = read(path).toString('utf8').trim();
  if (!/^[^:\s]+:\S+$/.test(text)) throw new ConfigError([`${path}: one line, user:password, is expected`]);
  return text;
}

/** The bytes of the file without one trailing line break, which editors add. */
function readKey(path: string): Buffer {
  const bytes = read(path);
  const key = bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes;
  if (key.length < KEY_BYTES_MIN) throw new ConfigError([`${path}: a key has at least ${KEY_BYTES_MIN} bytes, this one has ${key.length}`]);
  return key;
}

function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (thrown) {
    throw new ConfigError([`${path}: cannot be read (${causeOf(thrown)})`]);
  }
}
