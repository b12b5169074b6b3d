import { readFileSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import type { Principal, Role } from '../domain/principal.ts';
import { isVolumeName } from '../domain/resource.ts';
import { ConfigError, causeOf } from './problems.ts';
import { checkYaml } from './yaml-file.ts';

/** The principals of `FENCEGATE_AUTH_FILE`. Only hashes of tokens are in the file: reading it lets nobody in. */

const PRINCIPALS_MAX = 10_000;
const ROLES = ['reader', 'writer', 'auditor', 'admin'] as const satisfies readonly Role[];

const AUTH_FILE_SCHEMA = Type.Object(
  {
    principals: Type.Array(
      Type.Object(
        {
          name: Type.String({
            pattern: '^[A-Za-z0-9][A-Za-z0-9._@ -]{0,127}$',
            errorMessage: 'a name of letters, digits, ".", "_", "@", "-" and blanks',
          }),
          // `writeOnly`: what stands here by mistake is a token, and a message must not repeat it.
          token_sha256: Type.Optional(
            Type.String({
              pattern: '^[0-9a-f]{64}$',
              writeOnly: true,
              errorMessage: '64 lower-case hex digits, as fencegate token create prints them',
            }),
          ),
          roles: Type.Array(Type.Union(ROLES.map((role) => Type.Literal(role))), { minItems: 1 }),
          // Left out it is everything; a list from which the last one was taken must not be.
          scopes: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1 })),
        },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: PRINCIPALS_MAX },
    ),
  },
  { additionalProperties: false },
);

export interface KnownPrincipal {
  readonly principal: Principal;
  /** SHA-256 of the bearer token; `null`: this principal comes by certificate only. */
  readonly tokenSha256: Buffer | null;
}

/** Reads and checks the file. Throws `ConfigError` with one line per problem, each with the line it stands on. */
export function readAuthFile(path: string): KnownPrincipal[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (thrown) {
    throw new ConfigError([`${path}: cannot be read (${causeOf(thrown)})`]);
  }
  return parseAuthFile(text, path);
}

export function parseAuthFile(text: string, source: string): KnownPrincipal[] {
  const problems: string[] = [];
  const checked = checkYaml(text, source, AUTH_FILE_SCHEMA, problems);
  if (checked === null) throw new ConfigError(problems);
  const names = new Set<string>();
  const tokens = new Set<string>();
  const known = checked.value.principals.map((entry, index): KnownPrincipal => {
    const at = `${source}:${checked.lineOf(['principals', index])}: principal ${entry.name}`;
    if (names.has(entry.name)) problems.push(`${at}: the name is there twice`);
    names.add(entry.name);
    if (entry.token_sha256 !== undefined && tokens.has(entry.token_sha256)) problems.push(`${at}: shares its token with another principal`);
    if (entry.token_sha256 !== undefined) tokens.add(entry.token_sha256);
    for (const scope of entry.scopes ?? []) {
      if (!isVolumeName(scope.split('/', 1)[0] ?? ''))
        problems.push(`${at}: the scope ${JSON.stringify(scope)} does not begin with a volume name; write volume or volume/prefix`);
    }
    const principal: Principal = { name: entry.name, roles: new Set(entry.roles), scopes: entry.scopes ?? [], authenticated: true };
    return { principal, tokenSha256: entry.token_sha256 === undefined ? null : Buffer.from(entry.token_sha256, 'hex') };
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return known;
}
