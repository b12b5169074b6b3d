import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { etagOf, type FileFacts } from '../../../src/domain/file-facts.ts';
import type { Intent } from '../../../src/domain/intent.ts';
import { EIO, ENOSPC } from '../../support/fault-calls.ts';
import { descriptorsBack, factsAt, intentOf, openDescriptors, stageText, type TempVolume, tempVolume } from '../../support/temp-volume.ts';
import { LOCALITIES } from '../../support/volume-base.ts';

describe.each(LOCALITIES)('append and in-place writes (local: $local)', ({ local }) => {
  let temp: TempVolume;
  let before: FileFacts;
  let descriptors: number;
  beforeEach(async () => {
    temp = await tempVolume({ local });
    before = temp.write('a', 'old bytes.');
    descriptors = openDescriptors();
  });
  afterEach(async () => {
    temp.faults.heal();
    await descriptorsBack(descriptors);
    await temp.close();
  });

  async function intentFor(kind: 'append' | 'in_place', text: string, offset: number): Promise<Intent> {
    const staged = await stageText(temp, text);
    return intentOf(temp, 'a', { kind, offset, lengthBytes: text.length, mtimeNs: staged.mtimeNs }, { before, staged });
  }
  async function apply(intent: Intent): Promise<void> {
    const place = await temp.volume.locate(intent.resource);
    try {
      await temp.volume.apply(intent, place, null);
    } finally {
      place.close();
    }
  }
  const text = (): string => fs.readFileSync(temp.path('a'), 'utf8');

  it('an append goes to its offset of the same inode, with the mtime of the plan', async () => {
    const intent = await intentFor('append', ' And more.', 10);
    await apply(intent);
    expect(text()).toBe('old bytes. And more.');
    expect(factsAt(temp.path('a'))).toEqual({ ino: before.ino, sizeBytes: 20, mtimeNs: intent.staged?.mtimeNs });
  });

  it('an in-place write changes its range only, and may go over the end', async () => {
    await apply(await intentFor('in_place', 'NEW', 0));
    expect(text()).toBe('NEW bytes.');
    before = factsAt(temp.path('a'));
    await apply(await intentFor('in_place', 'end!', 8));
    expect(text()).toBe('NEW byteend!');
  });

  it('many chunks arrive whole', async () => {
    const large = 'x'.repeat(2_500_000);
    await apply(await intentFor('append', large, 10));
    expect(text()).toBe(`old bytes.${large}`);
  });

  it('F6: after a write by somebody who bypassed the gateway nothing is appended at a wrong place', async () => {
    const intent = await intentFor('append', 'more', 10);
    fs.appendFileSync(temp.path('a'), '!');
    await expect(apply(intent)).rejects.toMatchObject({ code: 'offset_mismatch', members: { expected_offset: 11 } });
    expect(text()).toBe('old bytes.!');
  });

  it('a file that was replaced meanwhile is not touched', async () => {
    const intent = await intentFor('append', 'more', 10);
    fs.writeFileSync(temp.path('b'), 'old bytes.');
    fs.renameSync(temp.path('b'), temp.path('a'));
    await expect(apply(intent)).rejects.toMatchObject({ code: 'precondition_failed' });
    expect(text()).toBe('old bytes.');
  });

  it('X8: a disk that fills up in the middle of an append: it is cut off again and did not happen', async () => {
    const intent = await intentFor('append', 'more', 10);
    temp.faults.failOnce('fsync', ENOSPC);
    temp.verdict = 'unknown';
    await expect(apply(intent)).rejects.toMatchObject({ code: 'insufficient_storage' });
    expect(text()).toBe('old bytes.');
    expect(temp.settled).toEqual([]);
  });

  it.runIf(!local)('F2: where the server says so and the file still has bytes of it, it is looked at', async () => {
    const intent = await intentFor('append', 'more', 10);
    temp.faults.failOnce('fsync', ENOSPC);
    temp.faults.on('ftruncate', async () => undefined);
    await expect(apply(intent)).rejects.toMatchObject({ code: 'outcome_unknown', members: { operation_id: 'op-1' } });
    expect(temp.settled).toEqual([intent]);
  });

  it('when it cannot be cut off, or was in place, it is looked at', async () => {
    const append = await intentFor('append', 'more', 10);
    temp.faults.on('fsync', () => Promise.reject(ENOSPC()));
    temp.faults.on('ftruncate', () => Promise.reject(EIO()));
    await expect(apply(append)).rejects.toMatchObject({ code: 'outcome_unknown', members: { operation_id: 'op-1' } });
    temp.faults.heal();
    before = factsAt(temp.path('a'));
    const inPlace = await intentFor('in_place', 'NEW', 0);
    temp.faults.failOnce('fsync', ENOSPC);
    await expect(apply(inPlace)).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(temp.settled).toEqual([append, inPlace]);
  });

  it('F3: a failed sync of the file is not repeated', async () => {
    const intent = await intentFor('append', 'more', 10);
    const syncs = temp.faults.log.filter((name) => name === 'fsync').length;
    temp.faults.failOnce('fsync', EIO);
    await expect(apply(intent)).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(temp.faults.log.filter((name) => name === 'fsync').length).toBe(syncs + 1);
  });

  it('an error of the close counts (F4)', async () => {
    const intent = await intentFor('append', 'more', 10);
    let closes = 0;
    temp.faults.on('close', async (real) => {
      closes += 1;
      await real();
      if (closes === 1) throw EIO();
    });
    const place = await temp.volume.locate(intent.resource);
    closes = 0;
    await expect(temp.volume.apply(intent, place, null)).rejects.toMatchObject({ code: 'outcome_unknown' });
    place.close();
  });

  it('what was finished under another inode than its answer names is not answered with it', async () => {
    const intent = await intentFor('in_place', 'NEW', 0);
    const promised = { ...before, mtimeNs: intent.staged?.mtimeNs ?? 0n };
    const told = { ...intent, audit: { ...intent.audit, etagAfter: etagOf(promised) } };
    temp.verdict = 'finished';
    temp.faults.on('fsync', () => Promise.reject(EIO()));
    temp.found = { ...promised, ino: promised.ino + 1n };
    await expect(apply(told)).rejects.toMatchObject({ code: 'outcome_unknown', members: { operation_id: 'op-1' } });
    temp.found = promised;
    await apply(told);
  });

  describe('readers while a range is written in place', () => {
    const read = async (
      opened: { read(start: number, end: number, signal: AbortSignal): AsyncIterable<Uint8Array> },
      end: number,
    ): Promise<string> => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of opened.read(0, end, new AbortController().signal)) chunks.push(chunk);
      return Buffer.concat(chunks).toString();
    };

    it('a stream that began before is cut, never completed', async () => {
      const opened = await temp.volume.open(temp.resource('a'));
      await apply(await intentFor('in_place', 'NEW', 0));
      await expect(read(opened, 10)).rejects.toMatchObject({ code: 'volume_unavailable' });
      await opened.close();
    });

    it('none begins while the outcome is unknown; one may once it is settled', async () => {
      const intent = await intentFor('in_place', 'NEW', 0);
      temp.faults.failOnce('fsync', EIO);
      await expect(apply(intent)).rejects.toMatchObject({ code: 'outcome_unknown' });
      await expect(temp.volume.open(intent.resource)).rejects.toMatchObject({ code: 'volume_unavailable' });
      temp.verdict = 'finished';
      expect((await temp.volume.settle(intent)).settlement).toBe('finished');
      const opened = await temp.volume.open(intent.resource);
      expect(await read(opened, 10)).toBe('NEW bytes.');
      await opened.close();
    });

    it('an append cuts nobody: the bytes below its offset stay', async () => {
      const opened = await temp.volume.open(temp.resource('a'));
      await apply(await intentFor('append', 'more', 10));
      expect(await read(opened, 10)).toBe('old bytes.');
      await opened.close();
    });
  });
});
