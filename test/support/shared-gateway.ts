import type { TestContext } from 'vitest';
import type { WhenFinished } from './gateway-process.ts';
import { ZooKeeperGateway, type ZooKeeperGatewayOptions } from './zookeeper-gateway.ts';
import { ZooKeeperProxy } from './zookeeper-proxy.ts';

export type Ending = Pick<TestContext, 'onTestFinished'>;

export interface BehindLink {
  readonly link: ZooKeeperProxy;
  readonly gateway: ZooKeeperGateway;
  readonly root: string;
}

/** A gateway with a link to the ensemble, and a root there, of its own. Both end when `whenFinished` says. */
export async function behindLink(port: number, root: string, whenFinished: WhenFinished, options: ZooKeeperGatewayOptions = {}): Promise<BehindLink> {
  const link = await ZooKeeperProxy.to(port, whenFinished);
  const gateway = await ZooKeeperGateway.start(`127.0.0.1:${link.port}${root}`, { whenFinished, ...options });
  return { link, gateway, root };
}

/**
 * One gateway for several tests of a file, which take turns at it, each on names of its own; a start costs more than most of them. The first
 * starts it, and whoever finds that it was ended. The link is whole at each turn; what a test held may still be held.
 */
export class SharedGateway {
  readonly #start: (whenFinished: WhenFinished) => Promise<BehindLink>;
  readonly #ends: (() => Promise<void> | void)[] = [];
  #now: BehindLink | null = null;
  #turn: Promise<void> = Promise.resolve();

  constructor(start: (whenFinished: WhenFinished) => Promise<BehindLink>) {
    this.#start = start;
  }

  /** Resolves when the tests that asked before are over. */
  async inTurn({ onTestFinished }: Ending): Promise<BehindLink> {
    const before = this.#turn;
    this.#turn = new Promise((resolve) => onTestFinished(() => resolve()));
    await before;
    if (this.#now?.gateway.process.isRunning !== true) this.#now = await this.#start((end) => void this.#ends.push(end));
    const { link, gateway } = this.#now;
    onTestFinished(() => {
      link.delay(0);
      link.mend();
    });
    await gateway.inState('connected', 'reconnected');
    return this.#now;
  }

  /** After the last test. */
  async end(): Promise<void> {
    for (const end of this.#ends.splice(0).reverse()) await end();
  }
}
