import { describe, expect, it } from 'vitest';
import { journalFile, prepareDataDirectory } from '../../../src/journal/data-directory.ts';
import { mountTypeOf, networkFileSystem } from '../../../src/journal/network-file-system.ts';
import { isSafeSqliteVersion, openReader, openWriter } from '../../../src/journal/open-database.ts';
import { JournalProcess } from '../../support/journal-process.ts';
import { openTestJournal } from '../../support/open-journal.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

describe('a commit that resolved', () => {
  it('is there after kill -9', async () => {
    const directory = temporaryDirectory();
    const child = new JournalProcess(directory, 'commit', 15_000);
    await child.line('durable 200');
    child.signal('SIGKILL');
    await child.exited();
    const last = Math.max(200, ...child.lines.map((line) => Number(/^durable (\d+)$/.exec(line)?.[1] ?? 0)));
    const { journal, start } = await openTestJournal(directory);
    expect(Number(start.highestMark())).toBeGreaterThanOrEqual(last);
    expect(await journal.verify(null, AbortSignal.timeout(5_000))).toMatchObject({ valid: true });
    for (const token of [1, 100, last])
      expect((await journal.audit({ requestId: `r${token}` }, { order: 'asc', limit: 2, cursor: null })).records).toHaveLength(1);
  }, 60_000);
});

describe('the database', () => {
  it('is opened with a WAL and full synchronisation, which hold after transactions as well', () => {
    const directory = temporaryDirectory();
    prepareDataDirectory(directory);
    const db = openWriter(journalFile(directory));
    db.exec('BEGIN IMMEDIATE; CREATE TABLE t (a); COMMIT');
    expect(db.pragma('synchronous', { simple: true })).toBe(2);
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
    expect(db.pragma('busy_timeout', { simple: true })).toBeLessThanOrEqual(100);
    const reader = openReader(journalFile(directory));
    expect(() => reader.exec('INSERT INTO t VALUES (1)')).toThrow(/readonly/);
    reader.close();
    db.close();
  });

  it('B27: needs a SQLite without the WAL-reset bug', () => {
    expect(['3.51.3', '3.51.10', '3.52.0', '4.0.0'].map(isSafeSqliteVersion)).toEqual([true, true, true, true]);
    expect(['3.51.2', '3.49.2', '3.50.99', '2.99.99', 'nonsense', ''].map(isSafeSqliteVersion)).toEqual([false, false, false, false, false, false]);
  });

  it('is refused on a network file system', () => {
    expect(networkFileSystem(0x6969n, undefined)).toBe('NFS');
    expect(networkFileSystem(-11317950n, undefined)).toBe('CIFS');
    expect(networkFileSystem(0x65735546n, 'fuse.sshfs')).toBe('fuse.sshfs');
    expect(networkFileSystem(0x65735546n, 'fuse.fuse-overlayfs')).toBeUndefined();
    expect(networkFileSystem(0xef53n, 'ext4')).toBeUndefined();
  });

  it('finds the mount of a directory, also with spaces in its name and one mount over another', () => {
    const table = [
      '21 1 8:1 / / rw - ext4 /dev/a rw',
      '30 21 0:5 / /mnt/my\\040data rw shared:1 - fuse.sshfs a rw',
      '31 21 0:6 / /mnt/my rw - tmpfs t rw',
      '32 21 0:7 / /mnt/my rw - xfs t rw',
    ].join('\n');
    expect(mountTypeOf('/mnt/my data/x', table)).toBe('fuse.sshfs');
    expect(mountTypeOf('/mnt/my/x', table)).toBe('xfs');
    expect(mountTypeOf('/mnt/mya', table)).toBe('ext4');
  });
});
