import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { judgeOwner } from '../../../src/journal/judge-owner.ts';
import { openJournal } from '../../../src/journal/open-journal.ts';
import type { OwnerRow } from '../../../src/journal/owner-row.ts';
import { isProcessGone, ownIdentity, readStat } from '../../../src/journal/process-identity.ts';
import { journalOptions } from '../../support/journal-options.ts';
import { JournalProcess } from '../../support/journal-process.ts';
import { auditOp, raise } from '../../support/journal-samples.ts';
import { openTestJournal } from '../../support/open-journal.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const here = { host: 'h', pid: 10, startTime: '500', bootId: 'boot', pidNamespace: 'ns' };
const row: OwnerRow = { ...here, pid: 7, incarnation: 'i', beat: 3, beatMonotonicMs: 50_000, beatWallMs: 1_000_000 };
const judge = (changes: Partial<OwnerRow>, monotonicMs: number, gone: boolean, wallMs = 1_000_000) =>
  judgeOwner({ ...row, ...changes }, { identity: here, monotonicMs, wallMs, takeoverAfterMs: 15_000 }, () => gone);

describe('the judgement of an owner', () => {
  it('goes by its process first, then by its heartbeat', () => {
    expect(judge({}, 50_500, true)).toEqual({ kind: 'gone' });
    expect(judge({}, 64_999, false)).toEqual({ kind: 'living', silentMs: 14_999 });
    expect(judge({}, 65_000, false)).toEqual({ kind: 'silent', silentMs: 15_000 });
  });

  it('never asks for a pid of another boot or pid namespace, and waits for silence up to the limit', () => {
    const neverAsked = (): boolean => {
      throw new Error('asked');
    };
    const at = (changes: Partial<OwnerRow>, wallMs: number) =>
      judgeOwner({ ...row, ...changes }, { identity: here, monotonicMs: 0, wallMs, takeoverAfterMs: 15_000 }, neverAsked);
    expect(at({ bootId: 'other' }, 1_000_000)).toEqual({ kind: 'unjudged', watchMs: 15_000 });
    expect(at({ pidNamespace: 'other' }, 1_004_000)).toEqual({ kind: 'unjudged', watchMs: 11_000 });
    // A wall clock that jumped ahead does not make a living owner look silent: some beats are listened for.
    expect(at({ bootId: 'other' }, 9_000_000)).toEqual({ kind: 'unjudged', watchMs: 3_000 });
  });

  it('reads the start time of a process whose name has spaces and brackets', () => {
    const fields = ['S', ...Array.from({ length: 18 }, (_, index) => String(index)), '424242', '0'];
    expect(readStat(`12 (a) b) ${fields.join(' ')}`)).toEqual({ state: 'S', startTime: '424242' });
    const me = ownIdentity();
    expect(isProcessGone(me.pid, me.startTime)).toBe(false);
    expect(isProcessGone(me.pid, '1')).toBe(true);
  });
});

describe('a data directory', () => {
  it('B36: is refused with one line to a second process while its owner lives', async () => {
    const directory = temporaryDirectory();
    const owner = await openTestJournal(directory);
    await expect(openJournal(journalOptions(directory))).rejects.toMatchObject({
      code: 'journal_unavailable',
      message: expect.stringMatching(
        /^The data directory is in use by process \d+ on .+ ms ago\); another gateway needs a FENCEGATE_DATA_DIR of its own\.$/,
      ),
    });
    await owner.journal.commit([auditOp()]);
    expect(owner.journal.healthy).toBe(true);
  });

  it('is taken over at once from an owner that was killed', async () => {
    const directory = temporaryDirectory();
    const first = new JournalProcess(directory, 'idle', 15_000);
    expect(await first.line('open')).toBe('open start');
    first.signal('SIGKILL');
    await first.exited();
    const second = await openTestJournal(directory);
    expect(second.takeOver).toMatchObject({ pid: first.child.pid, how: 'gone', seenToExit: true });
  }, 60_000);

  it('is left behind by an orderly end', async () => {
    const directory = temporaryDirectory();
    const first = new JournalProcess(directory, 'idle', 15_000);
    await first.line('open');
    first.signal('SIGTERM');
    await first.exited();
    expect((await openTestJournal(directory)).takeOver).toBeNull();
  }, 60_000);

  it('is taken over from a stopped owner, which is killed', async () => {
    const directory = temporaryDirectory();
    const first = new JournalProcess(directory, 'idle', 15_000);
    await first.line('open');
    first.signal('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const second = await openTestJournal(directory, { takeoverAfterMs: 1_000 });
    expect(second.takeOver).toMatchObject({ pid: first.child.pid, how: 'killed', seenToExit: true });
    await first.exited();
  }, 60_000);

  it('a stopped owner of another pid namespace is not killed; woken, it commits nothing and says that it was superseded', async () => {
    const directory = temporaryDirectory();
    const first = new JournalProcess(directory, 'idle', 15_000);
    await first.line('open');
    first.commitOnce();
    await first.line('durable 1');
    const db = new Database(join(directory, 'journal.sqlite'));
    db.prepare("UPDATE owner SET pid_namespace = 'pid:[1]'").run();
    db.close();
    first.signal('SIGSTOP');
    const second = await openTestJournal(directory, { takeoverAfterMs: 1_500 });
    expect(second.takeOver).toMatchObject({ how: 'silent', seenToExit: false });
    await second.journal.commit([raise('demo/a.txt', 2, { leaseRef: 'of the successor' })]);
    first.commitOnce();
    first.signal('SIGCONT');
    expect(await first.line('superseded')).toBe('superseded');
    first.commitOnce();
    expect(await first.line('refused')).toBe('refused journal_unavailable');
    expect(await second.journal.mark('demo/a.txt')).toMatchObject({ token: 2n, leaseRef: 'of the successor' });
    expect(second.journal.head().seq).toBe(1);
    expect(second.journal.healthy).toBe(true);
  }, 60_000);

  it('a living owner of another pid namespace is heard, and keeps its journal', async () => {
    const directory = temporaryDirectory();
    const owner = await openTestJournal(directory);
    const db = new Database(join(directory, 'journal.sqlite'));
    db.prepare("UPDATE owner SET pid_namespace = 'pid:[1]', beat_wall_ms = 0").run();
    db.close();
    await expect(openJournal(journalOptions(directory, { takeoverAfterMs: 5_000 }))).rejects.toMatchObject({ code: 'journal_unavailable' });
    await owner.journal.commit([auditOp()]);
  }, 60_000);

  it("says so when somebody still holds SQLite's lock", async () => {
    const directory = temporaryDirectory();
    const first = await openTestJournal(directory);
    await first.close();
    const db = new Database(join(directory, 'journal.sqlite'));
    db.exec('BEGIN IMMEDIATE');
    await expect(openJournal(journalOptions(directory))).rejects.toMatchObject({
      code: 'journal_unavailable',
      message: "Another process still holds the journal's lock. End it, or wait until it is gone, and start again.",
    });
    db.exec('ROLLBACK');
    db.close();
    expect((await openTestJournal(directory)).takeOver).toBeNull();
  }, 60_000);
});
