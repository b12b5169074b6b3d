import { setTimeout as delay } from 'node:timers/promises';
import { type Authenticator, createAuthenticator } from '../config/authenticate.ts';
import type { Config } from '../config/config.ts';
import { configOfProcess } from '../config/load.ts';
import { ConfigError } from '../config/problems.ts';
import { makeSampleVolume } from '../config/sample-volume.ts';
import { createLogger, type Logger } from '../observability/logger.ts';
import { type EndSignal, EXIT, exitCodeOfSignal } from './exit-codes.ts';
import { startProblem } from './start-problem.ts';
import { poolProblem } from './thread-pool.ts';

/** A gateway that was put together and has not started yet. */
export interface Gateway {
  /**
   * Resolves when it serves. `onWaiting`: where its coordinator does not answer, it waits for as long as that takes, and answers under this url
   * meanwhile; without it such a start rejects after a while.
   */
  start(onWaiting?: (url: string) => void): Promise<{ readonly url: string }>;
  /** Refuses new requests, lets running ones finish for `config.drainMs`, closes. Does not wait for a volume that hangs. */
  stop(): Promise<void>;
  /** Resolves when it cannot go on: another process took over, the journal is gone. */
  readonly failed?: Promise<Error>;
}

export type Compose = (config: Config, parts: { readonly logger: Logger; readonly authenticator: Authenticator }) => Promise<Gateway>;

/** What `serve` needs of the process that it runs in. */
export interface Host {
  /** One line for people, on standard error. */
  complain(line: string): void;
  onSignal(signal: EndSignal | 'SIGHUP', listener: () => void): void;
  /** Called for an error that nobody caught. */
  onCrash(listener: (error: unknown) => void): void;
  /** Ends the process at once. */
  endNow(code: number): void;
}

/** On top of the drain time: closing the journal, the last audit records. */
const CLOSE_MS_MAX = 5_000;
/** What a start that is under way when a signal comes may still take, to be ended in order. */
const START_LEFT_MS = 2_000;

/** Runs a gateway until a signal ends it. Resolves with the exit code. */
export async function serve(compose: Compose, host: Host): Promise<number> {
  let config: Config;
  let authenticator: Authenticator;
  try {
    config = configOfProcess();
    authenticator = createAuthenticator(config.authFile);
  } catch (thrown) {
    return complainAbout(thrown, host);
  }
  const tooSmall = await poolProblem(config.volumes);
  if (tooSmall !== null) {
    host.complain(tooSmall);
    return EXIT.failed;
  }
  const logger = createLogger(config.logLevel);
  host.onCrash((error) => {
    logger.fatal({ error }, 'an error that nobody caught');
    host.endNow(EXIT.failed);
  });
  const asked = watchSignals(host, logger, authenticator);
  let gateway: Gateway;
  try {
    const sample = config.volumes.find((volume) => volume.name === config.sampleVolume);
    if (sample?.path != null) await makeSampleVolume(sample.path);
    gateway = await compose(config, { logger, authenticator });
    let answers = false;
    const onWaiting = (url: string): void => {
      answers = true;
      logger.warn({ url }, 'waiting for the coordinator');
    };
    const started = await Promise.race([gateway.start(onWaiting), asked.then(() => (answers ? null : delay(START_LEFT_MS, null)))]);
    if (started === null && !answers) {
      // It waits for a coordinator or a volume. Nobody was served, and whatever a start leaves the next one takes up, as after a kill.
      logger.info({}, 'stopped before the start was over');
      host.endNow(EXIT.ok);
      return EXIT.ok;
    }
    const volumes = config.volumes.map(({ name }) => name);
    if (started !== null) logger.info({ url: started.url, volumes, authentication: authenticator.required }, 'listening');
  } catch (thrown) {
    if (thrown instanceof ConfigError) return complainAbout(thrown, host);
    logger.debug({ error: thrown }, 'the start failed');
    host.complain(startProblem(thrown, config));
    return EXIT.failed;
  }
  const failure = await Promise.race([asked, gateway.failed ?? asked]);
  if (failure !== null) logger.fatal({ error: failure }, 'the gateway cannot go on');
  const stopped = await stopWithin(gateway, config.drainMs + CLOSE_MS_MAX, logger);
  logger.info({ stopped }, 'stopped');
  return failure === null && stopped ? EXIT.ok : EXIT.failed;
}

/** Resolves with `null` at the first signal to end; the second one ends the process at once. SIGHUP reads the principals again. */
function watchSignals(host: Host, logger: Logger, authenticator: Authenticator): Promise<null> {
  host.onSignal('SIGHUP', () => {
    try {
      logger.info(authenticator.reload(), 'the principals were read again');
    } catch (thrown) {
      logger.error(
        { problems: thrown instanceof ConfigError ? thrown.problems : String(thrown) },
        'the principals could not be read again; the old ones stay in force',
      );
    }
  });
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      host.onSignal(signal, () => {
        if (asked) host.endNow(exitCodeOfSignal(signal));
        asked = true;
        logger.info({ signal }, 'stopping; a second signal ends at once');
        resolve(null);
      });
    }
  });
}

/** False when the gateway did not stop in time or failed to: a hung volume must not keep the process. */
async function stopWithin(gateway: Gateway, ms: number, logger: Logger): Promise<boolean> {
  const late = new AbortController();
  const stopped = gateway.stop().then(
    () => true,
    (thrown: unknown) => {
      logger.error({ error: thrown }, 'the stop failed');
      return false;
    },
  );
  const result = await Promise.race([stopped, delay(ms, false, { signal: late.signal }).catch(() => false)]);
  late.abort();
  return result;
}

function complainAbout(thrown: unknown, host: Host): number {
  if (!(thrown instanceof ConfigError)) throw thrown;
  for (const problem of thrown.problems) host.complain(problem);
  return EXIT.configuration;
}
