/**
 * Secrets never reach a log. Two nets: paths for what is logged itself, and patterns, which go over the finished line and so
 * also catch what lies deeper, and what came in by a message, a stack, a URL or a body that was logged as text.
 */

export const REDACTED = '[redacted]';

/** Names of members that hold a secret, in every spelling that occurs: JSON, TypeScript, headers. */
const SECRET_NAMES = [
  'lease_id',
  'leaseId',
  'x-lease-id',
  'session_id',
  'sessionId',
  'session_ids',
  'sessionIds',
  'signed_token',
  'signedToken',
  'bearer',
  'token_sha256',
  'tokenSha256',
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'password',
  'secret',
  'key',
  'auditKey',
  'signingKeys',
] as const;

/**
 * Paths for pino's `redact`: members of what is logged itself. Paths with wildcards, for deeper ones, cost more than all else that
 * is done for a request; the patterns find those.
 */
export const REDACTED_PATHS: string[] = SECRET_NAMES.map((name) => (/^[A-Za-z_]\w*$/.test(name) ? name : `["${name}"]`));

const TEXT = String.raw`"(?:[^"\\]|\\.)*"`;
const LIST = String.raw`\[(?:[^\]"]|${TEXT})*\]`;
const FLAT = String.raw`\{(?:[^{}"]|${TEXT})*\}`;
const OBJECT = String.raw`\{(?:[^{}"]|${TEXT}|${FLAT})*\}`;

// A quote may stand behind backslashes: JSON inside a string of the line.
const QUOTE = String.raw`\\*"`;
const names = SECRET_NAMES.filter((name) => name !== 'key').join('|');

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  // A member of the line, however deep: text, numbers, a list, an object with objects.
  [new RegExp(`("(?:${SECRET_NAMES.join('|')})"\\s*:\\s*)(?:${TEXT}|${LIST}|${OBJECT}|(?!null\\b)[\\w.+-]+)`, 'gi'), `$1"${REDACTED}"`],
  // The same in JSON that was logged as text.
  [new RegExp(`(${QUOTE}(?:${names})${QUOTE}\\s*:\\s*${QUOTE})[^"\\\\]*`, 'gi'), `$1${REDACTED}`],
  [new RegExp(`(${QUOTE}(?:${names})${QUOTE}\\s*:\\s*)\\[[^\\]]*\\]`, 'gi'), `$1"${REDACTED}"`],
  [/\b(X-Lease-Id\s*[:=]\s*)[^\s"',;\\]+/gi, `$1${REDACTED}`],
  // "a bearer token" are words, not one.
  [/\b(Bearer\s+)(?!tokens?(?:[\s"\\,]|$))[A-Za-z0-9._~+/=-]+/gi, `$1${REDACTED}`],
  [/(\/v1\/leases\/)[^/?#\s"'\\:]+/g, `$1${REDACTED}`],
  [/(\/v1\/sessions\/)(?!heartbeats\b)[^/?#\s"'\\:]+/g, `$1${REDACTED}`],
  [/([?&](?:lease_id|session_id)=)[^&#\s"'\\]+/g, `$1${REDACTED}`],
  // A signed fencing token: <decimal>.<lease ref>.<mode>.<key id>.<mac>; the mac makes it worth stealing.
  [/\b([1-9][0-9]{0,18}\.[\w-]+\.(?:exclusive|shared)\.[\w-]+\.)[\w-]{16,}/g, `$1${REDACTED}`],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[^"]*/g, REDACTED],
];

/** Takes every secret that has a recognisable form out of a finished log line. */
export function scrub(line: string): string {
  let clean = line;
  for (const [pattern, replacement] of PATTERNS) clean = clean.replace(pattern, replacement);
  return clean;
}
