import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { DemoClient } from './demo-client.ts';
import type { ZombieEvent, ZombieTask } from './zombie-process.ts';

/**
 * Writer A of the demo, a process of its own: takes a lease, works a while, writes. It never asks whether the lease is still
 * its own, because between such a question and the write it could be frozen just as well.
 */

/** Shorter than the lease: without the freeze it would be in time. */
const WORK_MS = 700;
const BODY_BYTES = 8_388_608;
const CONTINUE = /^HTTP\/1\.1 100 [^\r]*\r\n(?:[^\r]+\r\n)*\r\n/;

function tell(event: ZombieEvent): void {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

/**
 * One PUT over a bare socket, so that nothing but these bytes can leave it: the head, then the body only after `100 Continue`,
 * as curl does with a large file.
 */
async function upload(task: ZombieTask, fencingToken: string): Promise<ZombieEvent> {
  const url = new URL(task.url);
  const head = [
    `PUT /v1/files/${task.resource} HTTP/1.1`,
    `Host: ${url.host}`,
    `X-Fencing-Token: ${fencingToken}`,
    'X-Client-Id: writer-a',
    `Content-Length: ${BODY_BYTES}`,
    'Expect: 100-continue',
    'Connection: close',
  ];
  const headBytes = Buffer.from(`${head.join('\r\n')}\r\n\r\n`);
  const socket = connect(Number(url.port), url.hostname);
  socket.write(headBytes);
  let answer = '';
  for await (const chunk of socket.setEncoding('latin1')) {
    answer += String(chunk);
    if (!CONTINUE.test(answer)) continue;
    answer = answer.replace(CONTINUE, '');
    socket.write(Buffer.alloc(BODY_BYTES, 'written by A, too late\n'));
  }
  const status = Number(/^HTTP\/1\.1 ([0-9]{3})/.exec(answer)?.[1]);
  const code = /"code":"([a-z_]+)"/.exec(answer)?.[1] ?? '';
  return { event: 'answered', status, code, bodyBytes: BODY_BYTES, bytesSent: socket.bytesWritten - headBytes.length };
}

const task = JSON.parse(process.argv[2] ?? '') as ZombieTask;
const client = new DemoClient(task.url, 'writer-a', new AbortController().signal);
const lease = await client.acquire(task.resource, { ttlMs: task.ttlMs, waitMs: 0 });
tell({ event: 'held', fencingToken: lease.fencingToken });
await delay(WORK_MS);
tell(await upload(task, lease.fencingToken));
