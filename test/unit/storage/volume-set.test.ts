import { expect, it } from 'vitest';
import { soleTitles } from '../../../src/domain/volume-title.ts';
import { VolumeSet } from '../../../src/storage/volume-set.ts';
import { FakeClock, seededRandom } from '../../support/fake-clock.ts';
import { LivingVolume } from '../../support/living-volume.ts';
import { testPolicy } from '../../support/temp-volume.ts';
import { until } from '../../support/until.ts';

/** A directory whose server is gone before the gateway starts; nothing that is asked about it is answered. */
it('B25: a volume that hangs from the start is tried again for as long as it does, and holds no more than two threads of the pool', async () => {
  const living = new LivingVolume();
  const clock = new FakeClock();
  const deps = living.deps();
  let asked = 0;
  let answer: () => void = () => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const volumes = new VolumeSet({
    policies: [testPolicy({ path: living.root })],
    clock,
    random: seededRandom(1),
    titles: soleTitles('gateway'),
    takenFrom: () => null,
    detectFileSystem: async () => {
      asked += 1;
      await answered;
      return { type: 'nfs', local: false };
    },
    journalUuid: deps.journalUuid,
    markedAsBackup: deps.markedAsBackup,
    record: () => living.record,
    journalKnows: deps.journalKnows,
    writerOf: deps.writerOf,
    endOldProcess: deps.endOldProcess,
    lastMtimeNs: () => 0n,
    newestIntents: () => [],
    onChange: () => undefined,
    onMount: () => undefined,
    onAttributesNotCarried: () => undefined,
    onStampFailure: () => undefined,
  });
  const starting = volumes.start();
  let started = false;
  void starting.then(() => {
    started = true;
  });
  // What the start asks of the real file system takes its own time.
  while (!started) await clock.advanceAsync(1_000);
  for (let passed = 0; passed < 600_000; passed += 10_000) await clock.advanceAsync(10_000);
  expect(volumes.get('vol').state().state).toBe('unavailable');
  expect(asked).toBeLessThanOrEqual(2);
  answer();
  // The clock stands while it starts: calls of a real file system must not run over their deadlines.
  for (const before = asked; asked === before; ) await clock.advanceAsync(500);
  await until(() => (volumes.get('vol').state().state === 'open' ? true : null));
  await volumes.stop();
  living.remove();
});
