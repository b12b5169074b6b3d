import type { GatewayProcess } from './gateway-process.ts';
import { until } from './until.ts';

/**
 * Stops a gateway that its successor cannot end, and resolves with the successor once it listens. A process that is stopped within a transaction
 * (a heartbeat is one) holds SQLite's lock, and a start says so and ends; its supervisor would start it again. Here the stopped one gets
 * another instant until it is stopped outside of one; what a test holds in it stays held.
 */
export async function stoppedAndTakenOver(gateway: GatewayProcess, spawn: () => Promise<GatewayProcess>): Promise<GatewayProcess> {
  return until(async () => {
    gateway.signal('SIGSTOP');
    const successor = await spawn();
    try {
      await successor.listening();
      return successor;
    } catch (thrown) {
      if (!successor.stderr.includes("still holds the journal's lock")) throw thrown;
      gateway.signal('SIGCONT');
      return null;
    }
  });
}
