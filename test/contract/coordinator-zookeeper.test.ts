import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';
import { coordinatorContract } from '../support/coordinator-contract.ts';
import { COORDINATORS } from '../support/coordinators.ts';
import { LabServer, labsAsk, ServerLab } from '../support/server-lab.ts';

/** Everything that the lock service promises whichever coordinator it has, unchanged, over a real ZooKeeper server. */

const SUITES = new URL('../unit/locks/', import.meta.url);

let server: LabServer;
beforeAll(async () => {
  server = await LabServer.start();
  labsAsk(server);
});
afterAll(() => server.stop());

coordinatorContract('zookeeper (a server)', () => new ServerLab());

const usual = COORDINATORS.splice(0, COORDINATORS.length, { coordinator: 'zookeeper, a server', LockLab: ServerLab });
for (const name of readdirSync(SUITES)) {
  const suite = fileURLToPath(new URL(name, SUITES));
  // Under a name of its own: this process may have run it already, over others.
  if (name.endsWith('.test.ts') && readFileSync(suite, 'utf8').includes('describe.each(COORDINATORS)')) await import(`${suite}?server`);
}
COORDINATORS.splice(0, 1, ...usual);
