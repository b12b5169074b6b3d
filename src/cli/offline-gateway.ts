import { timingSafeEqual } from 'node:crypto';
import { FencegateError } from '../client/errors.ts';
import type { Authenticator } from '../config/authenticate.ts';
import type { Config } from '../config/config.ts';
import { configOfProcess } from '../config/load.ts';
import { ConfigError } from '../config/problems.ts';
import { refuse } from '../domain/errors.ts';
import type { Principal } from '../domain/principal.ts';
import type { VolumePolicy } from '../domain/volume.ts';
import { createLogger } from '../observability/logger.ts';
import { systemRandom } from '../observability/system-random.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT } from './exit-codes.ts';
import { startProblem } from './start-problem.ts';
import { poolProblem } from './thread-pool.ts';

/** Who the audit record names: whoever may read and write the data directory. */
const OPERATOR: Principal = { name: 'offline', roles: new Set(['admin'] as const), scopes: [], authenticated: true };
const TOKEN_BYTES = 32;

/**
 * A gateway over the data directory of a gateway that does not run, for one order: the same start, recovery and record as ever, but it listens
 * on a free port of the loopback and knows one bearer token, which nobody else does. Ends with 1 and one line while the other one lives.
 */
export async function withOfflineGateway(context: CommandContext, work: (own: CommandContext) => Promise<number>): Promise<number> {
  const token = Buffer.from(systemRandom.bytes(TOKEN_BYTES)).toString('base64url');
  const config = alone(configOfProcess());
  const tooSmall = await poolProblem(config.volumes);
  if (tooSmall !== null) {
    context.host.complain(tooSmall);
    return EXIT.failed;
  }
  try {
    const gateway = await context.compose(config, { logger: createLogger('silent'), authenticator: only(token) });
    const { url } = await gateway.start();
    try {
      return await work({ ...context, environment: { ...context.environment, FENCEGATE_URL: url, FENCEGATE_AUTH_TOKEN: token } });
    } finally {
      await gateway.stop();
    }
  } catch (thrown) {
    if (thrown instanceof FencegateError || thrown instanceof ConfigError) throw thrown;
    context.host.complain(startProblem(thrown, config));
    return EXIT.failed;
  }
}

/** Not reachable by anybody else, and with a volume beside the others: where all of them are somebody else's, a gateway would not start. */
function alone(config: Config): Config {
  const [like] = config.volumes;
  const beside: readonly VolumePolicy[] = like === undefined ? [] : [{ ...like, name: freeName(config), path: null }];
  return { ...config, host: '127.0.0.1', port: 0, tls: null, grpcPort: null, drainMs: 0, volumes: [...config.volumes, ...beside] };
}

function freeName({ volumes }: Config): string {
  let name = 'offline';
  while (volumes.some((volume) => volume.name === name)) name += '_';
  return name;
}

function only(token: string): Authenticator {
  const expected = Buffer.from(`Bearer ${token}`);
  return {
    required: true,
    authenticate: ({ authorization = '' }) => {
      const given = Buffer.from(authorization);
      if (given.length === expected.length && timingSafeEqual(given, expected)) return OPERATOR;
      throw refuse('unauthenticated', 'This gateway serves one order only.');
    },
    reload: () => ({ principals: 1 }),
  };
}
