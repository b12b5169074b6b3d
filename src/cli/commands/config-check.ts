import { snakeCase } from '../../client/camel-keys.ts';
import { createAuthenticator } from '../../config/authenticate.ts';
import { configOfProcess } from '../../config/load.ts';
import { readAuditKeys, readSigningKeys } from '../../config/secret-files.ts';
import type { CommandContext } from '../command-context.ts';
import { EXIT } from '../exit-codes.ts';
import { outJson } from '../screen.ts';
import { outFacts, outTable } from '../table.ts';

/** Everything that `serve` would check, and what came of it. Nothing is opened or made. Throws `ConfigError` with all problems. */
export async function checkConfiguration({ screen }: CommandContext, flags: { readonly json?: boolean }): Promise<number> {
  const config = configOfProcess();
  const authenticator = createAuthenticator(config.authFile);
  const principals = authenticator.required ? authenticator.reload().principals : 0;
  readSigningKeys(config);
  readAuditKeys(config);
  if (flags.json === true) {
    outJson(screen, inSnakeCase({ ...config, principals }));
    return EXIT.ok;
  }
  outFacts(screen, {
    listens: `${config.tls === null ? 'http' : 'https'}://${config.host.includes(':') ? `[${config.host}]` : config.host}:${config.port}`,
    'data directory': config.dataDir,
    principals: authenticator.required ? principals : 'no authentication',
  });
  screen.out('\n');
  const rows = config.volumes.map((one) => [one.name, one.path ?? 'locks only', one.tokens, one.requireToken, one.readOnly ? 'yes' : 'no']);
  await outTable(screen, ['VOLUME', 'PATH', 'TOKENS', 'TOKEN REQUIRED', 'READ-ONLY'], rows);
  return EXIT.ok;
}

/** As all JSON of ours: what comes of a setting has the name that it has in the file. */
function inSnakeCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inSnakeCase);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snakeCase(name), inSnakeCase(member)]));
}
