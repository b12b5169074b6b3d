/**
 * A gateway as a process of its own that stops or ends itself at a numbered step of the write protocol.
 * Started by `gateway-process.ts`; talks to it over the IPC channel.
 */
import { compose } from '../../src/compose.ts';
import { createAuthenticator } from '../../src/config/authenticate.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Step, Steps } from '../../src/domain/steps.ts';
import { createLogger } from '../../src/observability/logger.ts';

export interface ChildOrder {
  readonly environment: Record<string, string>;
  readonly directory: string;
}

/** From the test: at the next time `step` is reached, this happens. */
export interface TrapOrder {
  readonly step: Step;
  readonly signal: 'SIGSTOP' | 'SIGKILL';
}

export type ChildReport =
  | { readonly kind: 'listening'; readonly url: string }
  | { readonly kind: 'armed' }
  | { readonly kind: 'reached'; readonly step: Step; readonly operationId: string }
  | { readonly kind: 'failed'; readonly message: string };

const report = (message: ChildReport): Promise<void> =>
  new Promise((resolve) => {
    process.send?.(message, undefined, undefined, () => resolve());
  });

let trap: TrapOrder | null = null;

const steps: Steps = {
  reached: (step, operationId) => {
    if (trap === null || trap.step !== step) return undefined;
    const { signal } = trap;
    trap = null;
    return report({ kind: 'reached', step, operationId }).then(() => void process.kill(process.pid, signal));
  },
};

async function run(order: ChildOrder): Promise<void> {
  const config = loadConfig(order.environment, order.directory);
  const parts = { logger: createLogger(config.logLevel), authenticator: createAuthenticator(config.authFile) };
  const gateway = await compose(config, parts, { steps });
  const { url } = await gateway.start();
  process.once('SIGTERM', () => {
    void gateway.stop().then(() => process.exit(0));
  });
  await report({ kind: 'listening', url });
}

process.on('message', (message: ChildOrder | TrapOrder) => {
  if ('step' in message) {
    trap = message;
    void report({ kind: 'armed' });
    return;
  }
  run(message).catch(async (error: unknown) => {
    await report({ kind: 'failed', message: error instanceof Error ? `${error.message}\n${error.stack}` : String(error) });
    process.exit(1);
  });
});
