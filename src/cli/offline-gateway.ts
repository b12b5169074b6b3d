import { timingSafeEqual } from 'node:crypto';
import { existsSync } from 'node:fs';
import { FencegateError } from '../client/errors.ts';
import type { Authenticator } from '../config/authenticate.ts';
import type { Config } from '../config/config.ts';
import { configOfProcess } from '../config/load.ts';
import { ConfigError } from '../config/problems.ts';
import { refuse } from '../domain/errors.ts';
import type { Principal } from '../domain/principal.ts';
import type { VolumePolicy } from '../domain/volume.ts';
import { isDataDirectory, journalFile } from '../journal/data-directory.ts';
import { createLogger } from '../observability/logger.ts';
import { systemRandom } from '../observability/system-random.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT } from './exit-codes.ts';
import { complainOfNoJournal } from './no-journal.ts';
import { printable } from './printable.ts';
import { startProblem } from './start-problem.ts';
import { poolProblem } from './thread-pool.ts';
import { UsageError } from './usage-error.ts';

/** Who the audit record names: whoever may read and write the data directory. */
const OPERATOR: Principal = { name: 'offline', roles: new Set(['admin'] as const), scopes: [], authenticated: true };
const TOKEN_BYTES = 32;

/** What is to be done without a running gateway. */
export interface OfflineOrder {
  /** The volume that it is about; `null`: all of them, which only a gateway that was started here has. */
  readonly volume: string | null;
}

/**
 * A gateway over the data directory of a gateway that does not run, for one order: the same start, recovery and record as ever, but it listens
 * on a free port of the loopback and knows one bearer token, which nobody else does. Ends with 1 and one line while the other one lives, and
 * for an order over all volumes where no gateway was ever started: this would make one. Throws `UsageError` for a volume that is not configured.
 * `work` is told which volumes are: the gateway has another one.
 */
export async function withOfflineGateway(
  context: CommandContext,
  { volume }: OfflineOrder,
  work: (own: CommandContext, volumes: readonly string[]) => Promise<number>,
): Promise<number> {
  const token = Buffer.from(systemRandom.bytes(TOKEN_BYTES)).toString('base64url');
  const configured = configOfProcess();
  const { dataDir } = configured;
  if (volume !== null && !configured.volumes.some(({ name }) => name === volume))
    throw new UsageError(
      `there is no volume ${printable(volume)} in FENCEGATE_VOLUMES or FENCEGATE_CONFIG; nothing was made in ${printable(dataDir)}`,
    );
  const begins = !existsSync(journalFile(dataDir));
  if (volume === null && !isDataDirectory(dataDir)) {
    complainOfNoJournal(context.host, dataDir);
    return EXIT.failed;
  }
  const config = alone(configured);
  const tooSmall = await poolProblem(config.volumes);
  if (tooSmall !== null) {
    context.host.complain(tooSmall);
    return EXIT.failed;
  }
  try {
    const gateway = await context.compose(config, { logger: createLogger('silent'), authenticator: only(token) });
    const { url } = await gateway.start();
    try {
      const environment = { ...context.environment, FENCEGATE_URL: url, FENCEGATE_AUTH_TOKEN: token };
      const names = configured.volumes.map(({ name }) => name);
      const code = await work({ ...context, environment }, names);
      if (begins)
        context.screen.note(
          `a new journal was begun in ${printable(dataDir)} (FENCEGATE_DATA_DIR): what an earlier one knew, the audit log and the leases, is not in it`,
        );
      return code;
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
