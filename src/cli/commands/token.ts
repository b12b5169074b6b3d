import { createHash } from 'node:crypto';
import { systemRandom } from '../../observability/system-random.ts';
import type { CommandContext } from '../command-context.ts';
import { EXIT } from '../exit-codes.ts';
import { outJson } from '../screen.ts';

const TOKEN_BYTES = 32;

/** Prints a bearer token of 32 random bytes and what the principals file stores of it. */
export async function createToken({ screen }: CommandContext, { json }: { readonly json?: boolean }): Promise<number> {
  const token = Buffer.from(systemRandom.bytes(TOKEN_BYTES)).toString('base64url');
  const hash = createHash('sha256').update(token).digest('hex');
  if (json === true) outJson(screen, { token, token_sha256: hash });
  else screen.out(`token: ${token}\ntoken_sha256: ${hash}\n`);
  return EXIT.ok;
}
