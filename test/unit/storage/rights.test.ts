import * as fs from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { at } from '../../../src/storage/descriptor.ts';
import { copyInto } from '../../../src/storage/life/copy-into.ts';
import { IncarnationDirectory } from '../../../src/storage/life/incarnation-directory.ts';
import { aclWith, rightsOf, setAttribute } from '../../support/attributes.ts';
import { sealAs } from '../../support/seal.ts';
import { type TempVolume, tempVolume } from '../../support/temp-volume.ts';

const bits = fc.integer({ min: 0, max: 7 });
const rights = fc.record({ owner: bits, group: bits, mask: fc.option(bits), other: bits });

/** `null` as the mask: an ACL with the three entries that every file has. */
const defaultAcl = ({ mask, ...rest }: { owner: number; group: number; mask: number | null; other: number }): Buffer =>
  mask === null ? aclWith(null, rest) : aclWith(5_678, { ...rest, mask });

describe('rights of a file whose inode is new (F27)', () => {
  let temp: TempVolume;
  beforeEach(async () => {
    temp = await tempVolume({ local: true });
  });
  afterEach(() => temp.close());

  it('whatever the default ACL of its directory, a new file has what the kernel gives to one that is made there', async () => {
    await fc.assert(
      fc.asyncProperty(rights, async (given) => {
        setAttribute(temp.root, 'system.posix_acl_default', defaultAcl(given));
        const byHand = join(temp.root, 'by-hand');
        fs.rmSync(byHand, { force: true });
        fs.writeFileSync(byHand, '');
        const staging = await temp.volume.stage({ sha512: false });
        await sealAs(temp.volume, staging, null);
        expect(rightsOf(join(temp.incPath, staging.name))).toEqual(rightsOf(byHand));
        await staging.discard();
      }),
      { numRuns: 50 },
    );
  });

  it('a copy that recovery makes of a file has its rights and attributes', async () => {
    fs.writeFileSync(temp.path('a'), 'old', { mode: 0o640 });
    fs.chownSync(temp.path('a'), 1_234, 4_321);
    setAttribute(temp.path('a'), 'user.owner', 'finance');
    setAttribute(temp.path('a'), 'system.posix_acl_access', aclWith(5_678));
    const source = await temp.room.calls.open(at(temp.room.root, 'a'), fs.constants.O_RDONLY);
    await copyInto(temp.room.calls, source, at(temp.room.inc, 'copy'));
    expect(rightsOf(join(temp.incPath, 'copy'))).toEqual(rightsOf(temp.path('a')));
    await temp.room.calls.close(source);
  });

  it('the incarnation directory hands nothing down that the root of the volume hands down to it', async () => {
    fs.chownSync(temp.root, 0, 4_321);
    fs.chmodSync(temp.root, 0o2775);
    setAttribute(temp.root, 'system.posix_acl_default', aclWith(5_678));
    const made = await IncarnationDirectory.make(temp.room.calls, temp.room.root, { bytes: (count) => new Uint8Array(count) });
    const staged = join(temp.path(made.name), 'staged');
    fs.writeFileSync(staged, '');
    await made.close();
    expect(rightsOf(staged)).toEqual({ mode: (0o666 & ~process.umask()).toString(8), uid: 0, gid: expect.any(Number), attributes: {} });
    expect(fs.statSync(temp.path(made.name)).mode & 0o7777).toBe(0o700);
  });
});
