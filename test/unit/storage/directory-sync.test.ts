import { describe, expect, it } from 'vitest';
import { Descriptor } from '../../../src/storage/descriptor.ts';
import { DirectorySync } from '../../../src/storage/directory-sync.ts';
import { settle } from '../../support/fake-clock.ts';
import { EIO } from '../../support/fault-calls.ts';
import { tempVolume } from '../../support/temp-volume.ts';

/** An fsync that ends when the test says so. */
class SlowSync {
  readonly started: Array<{ end(): void; fail(error: Error): void }> = [];
  readonly fsync = (): Promise<void> => new Promise((end, fail) => this.started.push({ end: () => end(), fail }));
  readonly fstat = (): never => {
    throw new Error('not asked');
  };
}

const directory = new Descriptor(-1);

describe('the shared sync of a directory', () => {
  it('whoever comes while one runs waits for the next one, which they share', async () => {
    const slow = new SlowSync();
    const sync = new DirectorySync(slow);
    const done: string[] = [];
    const wait = (name: string): Promise<void> => sync.syncAs('1:1', directory).then(() => void done.push(name));
    const all = [wait('first')];
    expect(slow.started).toHaveLength(1);
    all.push(wait('second'), wait('third'));
    expect(slow.started).toHaveLength(1);
    slow.started[0]?.end();
    await settle();
    expect(done).toEqual(['first']);
    expect(slow.started).toHaveLength(2);
    all.push(wait('fourth'));
    slow.started[1]?.end();
    await settle();
    expect(done).toEqual(['first', 'second', 'third']);
    expect(slow.started).toHaveLength(3);
    slow.started[2]?.end();
    await Promise.all(all);
    expect(done).toEqual(['first', 'second', 'third', 'fourth']);
  });

  it('two directories do not wait for each other', async () => {
    const slow = new SlowSync();
    const sync = new DirectorySync(slow);
    void sync.syncAs('1:1', directory);
    const other = sync.syncAs('1:2', directory);
    expect(slow.started).toHaveLength(2);
    slow.started[1]?.end();
    await other;
  });

  it('F3: a failure reaches everybody who shared it; who came meanwhile gets a sync of its own', async () => {
    const slow = new SlowSync();
    const sync = new DirectorySync(slow);
    const first = sync.syncAs('1:1', directory);
    const second = sync.syncAs('1:1', directory);
    slow.started[0]?.fail(EIO());
    await expect(first).rejects.toThrow('EIO');
    await settle();
    expect(slow.started).toHaveLength(2);
    slow.started[1]?.end();
    await second;
  });

  it('a waiter that gave up and closed its descriptor spoils nothing for the others', async () => {
    const used: Descriptor[] = [];
    const ends: Array<() => void> = [];
    const sync = new DirectorySync({
      fsync: (each) =>
        new Promise((end) => {
          used.push(each);
          ends.push(() => end());
        }),
      fstat: () => Promise.reject(new Error('not asked')),
    });
    const [gone, stays] = [new Descriptor(-1), new Descriptor(-1)];
    const all = [sync.syncAs('1:1', directory), sync.syncAs('1:1', gone), sync.syncAs('1:1', stays)];
    gone.end(() => undefined);
    ends[0]?.();
    await settle();
    expect(used).toEqual([directory, stays]);
    expect(used[1]).toBe(stays);
    ends[1]?.();
    await Promise.all(all);
  });

  it('after all are served it remembers nothing and starts anew', async () => {
    const slow = new SlowSync();
    const sync = new DirectorySync(slow);
    const first = sync.syncAs('1:1', directory);
    slow.started[0]?.end();
    await first;
    await settle();
    const again = sync.syncAs('1:1', directory);
    expect(slow.started).toHaveLength(2);
    slow.started[1]?.end();
    await again;
  });

  it('two descriptors of one directory share by its identity', async () => {
    const temp = await tempVolume();
    try {
      const { calls } = temp.room;
      const again = await calls.reopen(temp.room.root);
      await Promise.all([temp.room.root, again, temp.room.root, again].map((each) => temp.room.sync.sync(each)));
      expect(temp.faults.log.filter((name) => name === 'fsync').length).toBeLessThanOrEqual(2);
      await calls.close(again);
    } finally {
      await temp.close();
    }
  });
});
