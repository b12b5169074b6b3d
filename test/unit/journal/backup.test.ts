import { existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { backupJournal } from '../../../src/journal/backup.ts';
import { auditOp, raise } from '../../support/journal-samples.ts';
import { openTestJournal } from '../../support/open-journal.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

describe('a backup', () => {
  it('is a whole journal of its moment, taken while commits go on, and says that it is a copy', async () => {
    const directory = temporaryDirectory();
    const opened = await openTestJournal(join(directory, 'data'));
    await Promise.all(
      Array.from({ length: 2_000 }, (_, index) => opened.journal.commit([raise('demo/a', index + 1), auditOp({ digest: 'd'.repeat(500) })])),
    );
    const file = join(directory, 'copy.sqlite');
    const writing = Promise.all(Array.from({ length: 500 }, (_, index) => opened.journal.commit([raise('demo/b', index + 1), auditOp()])));
    await Promise.all([opened.backup(file), writing]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(existsSync(`${file}-wal`)).toBe(false);
    expect(opened.start.markedAsBackup).toBe(false);

    const restored = join(directory, 'restored');
    mkdirSync(restored);
    renameSync(file, join(restored, 'journal.sqlite'));
    const copy = await openTestJournal(restored);
    expect(copy.start.markedAsBackup).toBe(true);
    expect(copy.takeOver).toBeNull();
    expect(copy.start.journalUuid).toBe(opened.start.journalUuid);
    expect(copy.start.gatewayUuid).not.toBe(opened.start.gatewayUuid);
    expect(await copy.journal.mark('demo/a')).toMatchObject({ token: 2_000n });
    expect(await copy.journal.verify(null, AbortSignal.timeout(20_000))).toMatchObject({ valid: true });
    await copy.journal.commit([{ op: 'meta_put', name: 'backup', value: null }]);
    expect(copy.start.markedAsBackup).toBe(false);
  }, 60_000);

  it('can be taken by another connection than the writer, while the gateway runs', async () => {
    const directory = temporaryDirectory();
    const opened = await openTestJournal(join(directory, 'data'));
    await opened.journal.commit([raise('demo/a', 7), auditOp()]);
    const restored = join(directory, 'restored');
    mkdirSync(restored);
    const writing = Promise.all(Array.from({ length: 300 }, () => opened.journal.commit([auditOp()])));
    await Promise.all([backupJournal(join(directory, 'data'), join(restored, 'journal.sqlite')), writing]);
    const copy = await openTestJournal(restored);
    expect(copy.start.markedAsBackup).toBe(true);
    expect(copy.start.highestMark()).toBe(7n);
    expect(await copy.journal.verify(null, AbortSignal.timeout(20_000))).toMatchObject({ valid: true });
  }, 60_000);

  it('never overwrites a file', async () => {
    const directory = temporaryDirectory();
    const opened = await openTestJournal(join(directory, 'data'));
    await expect(opened.backup(join(directory, 'data', 'journal.sqlite'))).rejects.toMatchObject({ code: 'invalid_request' });
    await expect(opened.backup(join(directory, 'missing', 'copy'))).rejects.toMatchObject({ code: 'journal_unavailable' });
    await opened.journal.commit([auditOp()]);
  }, 60_000);
});
