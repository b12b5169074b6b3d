import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../src/domain/limits.ts';
import { type AttributeLibrary, doJob } from '../../../src/storage/attribute-jobs.ts';
import { aclWith } from '../../support/attributes.ts';

type Attributes = Map<string, Buffer>;
const failure = (code: string): Error => Object.assign(new Error(code), { code });

/** Files are maps; `fail` may break a call. */
class FakeFiles implements AttributeLibrary {
  readonly files: Record<string, Attributes>;
  fail: (call: 'list' | 'get' | 'set', name: string) => string | null = () => null;

  constructor(files: Record<string, Record<string, string | Buffer>>) {
    this.files = Object.fromEntries(
      Object.entries(files).map(([path, own]) => [path, new Map(Object.entries(own).map(([name, value]) => [name, Buffer.from(value)]))]),
    );
  }

  namesOf(path: string): string[] {
    return [...(this.files[path] ?? new Map<string, Buffer>()).keys()];
  }

  #try(call: 'list' | 'get' | 'set', name: string): void {
    const code = this.fail(call, name);
    if (code !== null) throw failure(code);
  }

  listAttributesSync(path: string): string[] {
    this.#try('list', path);
    return this.namesOf(path);
  }

  getAttributeSync(path: string, name: string): Buffer {
    this.#try('get', name);
    const value = this.files[path]?.get(name);
    if (value === undefined) throw failure('ENODATA');
    return value;
  }

  setAttributeSync(path: string, name: string, value: Buffer): void {
    this.#try('set', name);
    this.files[path]?.set(name, value);
  }

  removeAttributeSync(path: string, name: string): void {
    if (this.files[path]?.delete(name) !== true) throw failure('ENODATA');
  }
}

const carry = { kind: 'carry', from: 'old', to: 'new' } as const;

describe('F27: attributes that go over to the new inode of a file', () => {
  it('are those about the file, its ACL on NFS 4 among them; what was about the old bytes is none of them, and is not missed', () => {
    const about = {
      'user.owner': 'finance',
      'user.empty': '',
      'trusted.backup': 'x',
      'system.posix_acl_access': 'acl',
      'system.nfs4_acl': 'acl',
      'security.selinux': 'label',
      'security.SMACK64': 'label',
    };
    const old = {
      ...about,
      'security.capability': 'x',
      'security.ima': 'x',
      'security.evm': 'x',
      'trusted.overlay.opaque': 'y',
      'system.other': 'x',
    };
    const files = new FakeFiles({ old, new: {} });
    expect(doJob(files, carry)).toBe(0);
    expect(Object.fromEntries([...(files.files['new'] as Attributes)].map(([name, value]) => [name, value.toString()]))).toEqual(about);
  });

  it.each(['EPERM', 'EACCES', 'ENOTSUP', 'EINVAL', 'E2BIG'])('that are refused with %s are left out and counted, and the others go over', (code) => {
    const files = new FakeFiles({ old: { 'user.first': '1', 'trusted.refused': '2', 'user.last': '3' }, new: {} });
    files.fail = (call, name) => (call === 'set' && name === 'trusted.refused' ? code : null);
    expect(doJob(files, carry)).toBe(1);
    expect(files.namesOf('new')).toEqual(['user.first', 'user.last']);
  });

  it.each(['EACCES', 'ENODATA', 'ERANGE'])('that cannot be read (%s) are left out and counted', (code) => {
    const files = new FakeFiles({ old: { 'user.first': '1', 'user.secret': '2', 'user.last': '3' }, new: {} });
    files.fail = (call, name) => (call === 'get' && name === 'user.secret' ? code : null);
    expect(doJob(files, carry)).toBe(1);
    expect(files.namesOf('new')).toEqual(['user.first', 'user.last']);
  });

  it.each(['ENOSPC', 'EDQUOT', 'EIO', 'ESTALE', 'EROFS'])('a failure of the volume while one is set (%s) is a failure of the write', (code) => {
    const files = new FakeFiles({ old: { 'user.first': '1' }, new: {} });
    files.fail = (call) => (call === 'set' ? code : null);
    expect(() => doJob(files, carry)).toThrow(code);
  });

  it.each(['EIO', 'ESTALE', 'ETIMEDOUT'])('so is one while they are listed or read (%s)', (code) => {
    const files = new FakeFiles({ old: { 'user.first': '1' }, new: {} });
    for (const failing of ['list', 'get']) {
      files.fail = (call) => (call === failing ? code : null);
      expect(() => doJob(files, carry)).toThrow(code);
    }
  });

  it.each(['ENOTSUP', 'ENOSYS'])('are none where the file system has none at all (%s), and nothing is missed', (code) => {
    const files = new FakeFiles({ old: { 'user.first': '1' }, new: {} });
    files.fail = () => code;
    expect(doJob(files, carry)).toBe(0);
    expect(doJob(files, { kind: 'inherit', directory: 'old', file: 'new', mode: 0o666 })).toBe(0);
    expect(doJob(files, { kind: 'pass_nothing_on', directory: 'old' })).toBe(0);
    expect(files.namesOf('new')).toEqual([]);
  });

  it(`are at most ${LIMITS.attributesCarriedMax}; those beyond are counted`, () => {
    const old = Object.fromEntries(Array.from({ length: LIMITS.attributesCarriedMax + 3 }, (_, index) => [`user.${index}`, 'x']));
    const files = new FakeFiles({ old, new: {} });
    expect(doJob(files, carry)).toBe(3);
    expect(files.namesOf('new')).toHaveLength(LIMITS.attributesCarriedMax);
  });
});

describe('F27: the default ACL of a directory', () => {
  const inherit = { kind: 'inherit', directory: 'dir', file: 'file', mode: 0o640 } as const;

  it('becomes the ACL of a new file, less what its mode does not give; a refusal is counted', () => {
    const files = new FakeFiles({ dir: { 'system.posix_acl_default': aclWith(5_678) }, file: {} });
    expect(doJob(files, inherit)).toBe(0);
    expect(files.files['file']?.get('system.posix_acl_access')).toEqual(aclWith(5_678, { owner: 6, group: 5, mask: 4, other: 0 }));
    files.fail = (call) => (call === 'set' ? 'ENOTSUP' : null);
    expect(doJob(files, inherit)).toBe(1);
  });

  it('is taken from the directory that files are staged in', () => {
    const files = new FakeFiles({ dir: { 'system.posix_acl_default': aclWith(5_678), 'user.kept': 'x' } });
    expect(doJob(files, { kind: 'pass_nothing_on', directory: 'dir' })).toBe(0);
    expect(doJob(files, { kind: 'pass_nothing_on', directory: 'dir' })).toBe(0);
    expect(files.namesOf('dir')).toEqual(['user.kept']);
  });
});
