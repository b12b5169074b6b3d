import type { Amount, RequestPlan } from '../load/plan.ts';
import { runWrk } from '../load/wrk.ts';
import { fencegate, type RunningFencegate } from '../peers/fencegate.ts';
import { type HttpPeer, requestHead } from '../peers/http-peer.ts';
import type { Peer, Stage } from '../stage.ts';
import { measured } from './measured.ts';
import type { Sample, Turn, TurnLength } from './row.ts';

/** Created or replaced, as nginx (201, 204) and the gateway (201, 200) say it. */
const WRITTEN = [200, 201, 204];
const REFUSED = [412];
const READ = [200];

/** Timed, or the given number of requests on each connection for bodies so large that a second holds only a few. */
export type Repeat = 'timed' | number;

/** Each connection replaces a file of its own again and again. */
export function putTurn(contestant: string, peer: Peer<HttpPeer>, bodyBytes: number, repeat: Repeat): Turn {
  return {
    contestant,
    peer,
    run: async (stage, connections, length) => {
      const running = await stage.running(peer);
      return write(
        stage,
        running,
        each(connections, (index) => putRequest(running, `file-${index}`, bodyBytes, {})),
        amountOf(repeat, length),
      );
    },
  };
}

/** The same under leases that are held during the whole run, with their tokens. */
export function heldPutTurn(contestant: string, bodyBytes: number, repeat: Repeat, peer: Peer<RunningFencegate> = fencegate): Turn {
  return {
    contestant,
    peer,
    run: async (stage, connections, length) => {
      const running = await stage.running(peer);
      const requests = await Promise.all(
        each(connections, async (index) => {
          const { fencingToken, leaseId } = await running.held(`held-${index}`);
          return putRequest(running, `held-${index}`, bodyBytes, { 'X-Fencing-Token': fencingToken, 'X-Lease-Id': leaseId });
        }),
      );
      return write(stage, running, requests, amountOf(repeat, length));
    },
  };
}

/**
 * A writer whose lease has ended and whose file has a newer holder. With `expects` it asks before it sends its body, must be
 * refused with none of it sent, and needs a new connection for the next try; without, head and body arrive together.
 */
export function refusedPutTurn(contestant: string, bodyBytes: number, expects: boolean): Turn {
  return {
    contestant,
    peer: fencegate,
    run: async (stage, connections, length) => {
      const running = await stage.running(fencegate);
      const requests = await Promise.all(
        each(connections, async (index) => {
          const headers = { 'X-Fencing-Token': await running.staleToken(`refused-${index}`), ...(expects ? { Expect: '100-continue' } : {}) };
          return { ...putRequest(running, `refused-${index}`, bodyBytes, headers), expectsContinue: expects };
        }),
      );
      const sample = await measured(stage, running, () =>
        stage.driver.run({ port: running.port, requests, statuses: REFUSED, amount: amountOf('timed', length) }),
      );
      if (expects && sample.bodyBytesSent > 0) throw new Error(`${sample.bodyBytesSent} bytes of refused bodies were asked for`);
      return sample;
    },
  };
}

/** All connections read the same file. Small ones with wrk, for the reason given there. */
export function getTurn(contestant: string, peer: Peer<HttpPeer>, bodyBytes: number, repeat: Repeat): Turn {
  const file = `read-${bodyBytes}`;
  return {
    contestant,
    peer,
    needs: repeat === 'timed' ? [{ command: 'wrk', package: 'wrk' }] : [],
    run: async (stage, connections, length) => {
      const running = await stage.running(peer);
      await seedOnce(stage, peer.id, running, file, bodyBytes);
      if (repeat === 'timed') {
        return measured(stage, running, () => runWrk(`http://127.0.0.1:${running.port}${running.target(file)}`, connections, length.seconds));
      }
      const request = { head: requestHead('GET', running.target(file), running.port, {}), bodyBytes: 0, expectsContinue: false };
      return measured(stage, running, () =>
        stage.driver.run({ port: running.port, requests: each(connections, () => request), statuses: READ, amount: amountOf(repeat, length) }),
      );
    },
  };
}

const seeded = new Set<string>();

/** Puts the file to read through the server itself, so that each serves it as one of its own. */
async function seedOnce(stage: Stage, id: string, running: HttpPeer, file: string, bodyBytes: number): Promise<void> {
  const key = `${id} ${file}`;
  if (seeded.has(key)) return;
  await stage.driver.run({
    port: running.port,
    requests: [putRequest(running, file, bodyBytes, {})],
    statuses: WRITTEN,
    amount: { requestsPerConnection: 1 },
  });
  seeded.add(key);
}

function write(stage: Stage, running: HttpPeer, requests: readonly RequestPlan[], amount: Amount): Promise<Sample> {
  return measured(stage, running, () => stage.driver.run({ port: running.port, requests, statuses: WRITTEN, amount }));
}

function putRequest(running: HttpPeer, file: string, bodyBytes: number, headers: Readonly<Record<string, string>>): RequestPlan {
  const head = requestHead('PUT', running.target(file), running.port, {
    'Content-Type': 'application/octet-stream',
    'Content-Length': bodyBytes,
    ...headers,
  });
  return { head, bodyBytes, expectsContinue: false };
}

function amountOf(repeat: Repeat, length: TurnLength): Amount {
  return repeat === 'timed' ? { warmUpMs: length.warmUpMs, measureMs: length.seconds * 1000 } : { requestsPerConnection: repeat };
}

function each<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
