import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { threadsInside } from '../../../src/domain/threads-inside.ts';
import { AttributeCalls } from '../../../src/storage/attribute-calls.ts';
import { at, Descriptor } from '../../../src/storage/descriptor.ts';
import { LaneError } from '../../../src/storage/errno.ts';
import { type FileCalls, fileCalls } from '../../../src/storage/file-calls.ts';
import { Lane } from '../../../src/storage/lane.ts';
import { rightsOf, setAttribute } from '../../support/attributes.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { type TempVolume, tempVolume } from '../../support/temp-volume.ts';

/** As a thread is that the kernel does not let go of: it stands still at each call until `gate` is opened, then it does what it was told. */
const GATED = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { writeFileSync } = require('node:fs');
  parentPort.on('message', (request) => {
    if (request === null) return parentPort.close();
    Atomics.wait(workerData, 0, 0);
    writeFileSync(request.job.to ?? request.job.file, 'late');
    parentPort.postMessage({ id: request.id, notCarried: 0, failure: null });
  });`;

class Gate {
  readonly #cell = new Int32Array(new SharedArrayBuffer(4));
  readonly started: Worker[] = [];
  #ended = 0;

  readonly start = (): Worker => {
    const worker = new Worker(GATED, { eval: true, workerData: this.#cell });
    worker.on('exit', () => {
      this.#ended += 1;
    });
    this.started.push(worker);
    return worker;
  };

  open(): void {
    Atomics.store(this.#cell, 0, 1);
    Atomics.notify(this.#cell, 0);
  }

  async allEnded(): Promise<void> {
    while (this.#ended < this.started.length) await settle();
  }
}

let temp: TempVolume;
let clock: FakeClock;
let lane: Lane;
beforeEach(async () => {
  temp = await tempVolume({ local: true });
  clock = new FakeClock();
  lane = new Lane({ volume: 'vol', inFlightMax: 4, queueMax: 10, deadlineMs: 4_000, clock });
  await lane.run(() => Promise.resolve(), { reachesDisk: true });
  temp.write('from', 'old');
  temp.write('to', 'new');
  setAttribute(temp.path('from'), 'user.owner', 'finance');
});
afterEach(() => temp.close());

const opened = (calls: FileCalls, name: string): Promise<Descriptor> => calls.open(at(temp.room.root, name), fs.constants.O_RDWR);
const pathOf = (fd: number): string | null => {
  try {
    return fs.readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return null;
  }
};

describe.each([
  ['a network mount', false],
  ['a local disk', true],
])('the thread for attributes of a volume on %s (F27, F13)', (_where, local) => {
  it('carries them over, and what the volume refuses is told', async () => {
    const told: number[] = [];
    const attributes = new AttributeCalls((count) => void told.push(count));
    const calls = fileCalls(local, lane, attributes);
    setAttribute(temp.path('from'), 'trusted.backup', Buffer.from([0, 1, 255]));
    const [from, to] = [await opened(calls, 'from'), await opened(calls, 'to')];
    await calls.carryAttributes(from, to);
    expect(rightsOf(temp.path('to')).attributes).toEqual({ 'user.owner': '66696e616e6365', 'trusted.backup': '0001ff' });
    expect([told, threadsInside()]).toEqual([[], []]);
    // A pipe takes no attributes in `user.`: EPERM.
    execFileSync('mkfifo', [temp.path('pipe')]);
    const pipe = new Descriptor(fs.openSync(temp.path('pipe'), fs.constants.O_RDWR | fs.constants.O_NONBLOCK));
    await calls.carryAttributes(from, pipe);
    expect(told).toEqual([1]);
    for (const descriptor of [from, to, pipe]) await calls.close(descriptor);
    attributes.end();
  });

  it('a failure of the volume reaches the caller with its errno', async () => {
    const attributes = new AttributeCalls(() => undefined);
    const calls = fileCalls(local, lane, attributes);
    const from = await opened(calls, 'from');
    await expect(calls.carryAttributes(new Descriptor(999_999), from)).rejects.toMatchObject({ code: 'ENOENT', errno: 2 });
    await calls.close(from);
    attributes.end();
  });

  it('hangs without holding up the caller beyond the deadline; the event loop and other calls go on', async () => {
    const gate = new Gate();
    const calls = fileCalls(local, lane, new AttributeCalls(() => undefined, gate.start));
    const [from, to] = [await opened(calls, 'from'), await opened(calls, 'to')];
    const hung = calls.carryAttributes(from, to).catch((thrown: unknown) => thrown);
    while (lane.inFlight === 0) await settle();
    expect(threadsInside()).toEqual(['ThreadCall']);
    expect((await calls.fstat(from)).size).toBe(3n);
    clock.advance(local ? 10_000 : 4_000);
    expect(await hung).toMatchObject({ code: 'volume_unavailable', started: true });
    expect(lane.breaker).toBe('open');
    gate.open();
    await gate.allEnded();
    expect(threadsInside()).toEqual([]);
    for (const descriptor of [from, to]) await calls.close(descriptor);
  });

  it('a descriptor that the hung thread has in its hands stays open after it was closed, so its late effect never meets another file', async () => {
    const gate = new Gate();
    const calls = fileCalls(local, lane, new AttributeCalls(() => undefined, gate.start));
    const [from, to] = [await opened(calls, 'from'), await opened(calls, 'to')];
    const hung = calls.carryAttributes(from, to).catch((thrown: unknown) => thrown);
    while (lane.inFlight === 0) await settle();
    clock.advance(local ? 10_000 : 4_000);
    expect(await hung).toBeInstanceOf(LaneError);
    // The staged file is dropped, and its name with it; many other files are opened meanwhile.
    await calls.close(to);
    fs.unlinkSync(temp.path('to'));
    expect(pathOf(to.fd)).toBe(`${temp.path('to')} (deleted)`);
    const others = Array.from({ length: 20 }, (_, index) => fs.openSync(temp.path(`other-${index}`), 'w+'));
    expect(others).not.toContain(to.fd);
    gate.open();
    await gate.allEnded();
    for (const [index, fd] of others.entries()) {
      expect(fs.readFileSync(temp.path(`other-${index}`), 'utf8')).toBe('');
      fs.closeSync(fd);
    }
    while (pathOf(to.fd)?.startsWith(temp.path('to'))) await settle();
    await calls.close(from);
  });

  it('one that hangs is left alone: the next call gets a thread of its own, and there are no more than calls may hang', async () => {
    const gate = new Gate();
    const attributes = new AttributeCalls(() => undefined, gate.start);
    const calls = fileCalls(local, lane, attributes);
    const [from, to] = [await opened(calls, 'from'), await opened(calls, 'to')];
    const tries = 20;
    for (let round = 0; round < tries; round += 1) {
      const answers = Promise.all(Array.from({ length: 3 }, () => calls.carryAttributes(from, to).catch((thrown: unknown) => thrown)));
      await settle();
      clock.advance(10_000);
      for (const answer of await answers) expect(answer).toBeInstanceOf(LaneError);
    }
    expect(gate.started.length).toBeGreaterThan(1);
    // Four calls in flight, and one that looks whether the volume is back.
    expect(gate.started.length).toBeLessThanOrEqual(5);
    gate.open();
    await gate.allEnded();
    for (const descriptor of [from, to]) await calls.close(descriptor);
  });

  it('one that dies fails the calls it was in, and the next call gets a new one', async () => {
    const dying: Worker[] = [];
    const attributes = new AttributeCalls(
      () => undefined,
      () => {
        const worker = new Worker(dying.length === 0 ? "require('node:worker_threads').parentPort.once('message', () => process.exit(1))" : GATED, {
          eval: true,
          workerData: new Int32Array(new SharedArrayBuffer(4)).fill(1),
        });
        dying.push(worker);
        return worker;
      },
    );
    const calls = fileCalls(local, lane, attributes);
    const [from, to] = [await opened(calls, 'from'), await opened(calls, 'to')];
    await expect(calls.carryAttributes(from, to)).rejects.toThrow('the thread for attributes has ended');
    await calls.carryAttributes(from, to);
    expect([dying.length, threadsInside()]).toEqual([2, []]);
    attributes.end();
    for (const descriptor of [from, to]) await calls.close(descriptor);
  });

  it('a file without attributes does not wake it on a local disk', async () => {
    const gate = new Gate();
    const attributes = new AttributeCalls(() => undefined, gate.start);
    const calls = fileCalls(local, lane, attributes);
    gate.open();
    const [from, to] = [await opened(calls, 'to'), await opened(calls, 'from')];
    await calls.carryAttributes(from, to);
    await calls.inheritAcl(temp.room.root, to, 0o666);
    expect(gate.started.length).toBe(local ? 0 : 1);
    attributes.end();
    for (const descriptor of [from, to]) await calls.close(descriptor);
  });

  it('does nothing where attributes are not kept', async () => {
    const calls = fileCalls(local, lane, null);
    const file = await opened(calls, 'from');
    await calls.carryAttributes(file, file);
    await calls.inheritAcl(file, file, 0o666);
    await calls.passNothingOn(file);
    expect([calls.keepsAttributes, lane.inFlight]).toEqual([false, 0]);
    await calls.close(file);
  });
});
