/**
 * Secrets never reach a log. Two nets: paths, which pino follows into objects, and patterns, which go over the finished line
 * and so also catch what came in by a message, a stack, a URL or a body that was logged as text.
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

const DEPTH_MAX = 4;

/** Paths for pino's `redact`, down to a few levels; the patterns go deeper. */
export const REDACTED_PATHS: string[] = SECRET_NAMES.flatMap((name) => {
  const own = /^[A-Za-z_]\w*$/.test(name) ? name : `["${name}"]`;
  return Array.from({ length: DEPTH_MAX }, (_, depth) => {
    const above = Array.from({ length: depth }, () => '*').join('.');
    return depth === 0 ? own : own.startsWith('[') ? above + own : `${above}.${own}`;
  });
});

// A quote may stand behind backslashes: JSON inside a string of the line.
const QUOTE = String.raw`\\*"`;
const names = SECRET_NAMES.filter((name) => name !== 'key').join('|');

const PATTERNS: readonly (readonly [RegExp, string])[] = [
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
