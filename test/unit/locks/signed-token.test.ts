import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { callerOf, LockLab, resource } from '../../support/lock-lab.ts';

const [A, B] = [resource('a'), resource('b')];
const key = (id: string, byte: number) => ({ id, secret: new Uint8Array(32).fill(byte) });
const signedLab = (keys = [key('k1', 1)]) => new LockLab({ policy: { tokens: 'signed' }, signingKeys: keys });
const ann = callerOf('ann');

describe('a signed token', () => {
  it('is given with the lease where the volume asks for it, and read back', async () => {
    const lab = signedLab();
    const lease = await lab.acquire(A, {}, ann);
    expect(lease.signedToken).toMatch(new RegExp(`^${lease.fencingToken}\\.${lease.leaseRef}\\.exclusive\\.k1\\.[\\w-]{43}$`));
    expect(lab.locks.writeLeases.readSigned(lease.signedToken ?? '', A, 'ann')).toEqual({ token: lease.fencingToken });
    expect((await new LockLab({ signingKeys: [key('k1', 1)] }).acquire(A)).signedToken).toBeNull();
  });

  it('is forged for another resource, another principal, another number, another mode or another key', async () => {
    const lab = signedLab();
    const lease = await lab.acquire(A, {}, ann);
    const text = lease.signedToken ?? '';
    const [number, ref, mode, id, mac] = text.split('.');
    const read = (changed: string, where = A, who = 'ann') => lab.locks.writeLeases.readSigned(changed, where, who);
    expect(read(text, B)).toBe('forged');
    expect(read(text, A, 'bob')).toBe('forged');
    expect(read(`${BigInt(number ?? 0) + 1n}.${ref}.${mode}.${id}.${mac}`)).toBe('forged');
    expect(read(`${number}.${ref}.shared.${id}.${mac}`)).toBe('forged');
    expect(read(`${number}.${ref}.${mode}.k2.${mac}`)).toBe('forged');
    expect(read(`${number}.${ref}.${mode}.${id}.${'A'.repeat(43)}`)).toBe('forged');
  });

  it('has one spelling: with the unused bits of its last character changed it is invalid', async () => {
    const lab = signedLab();
    const text = (await lab.acquire(A, {}, ann)).signedToken ?? '';
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const last = alphabet.indexOf(text.at(-1) ?? '');
    expect(last % 4).toBe(0);
    for (const bits of [1, 2, 3]) expect(lab.locks.writeLeases.readSigned(`${text.slice(0, -1)}${alphabet[last + bits]}`, A, 'ann')).toBe('invalid');
  });

  it('of an older key is still read, of a removed one no more', async () => {
    const old = await signedLab([key('old', 7)]).acquire(A, {}, ann);
    const rotated = signedLab([key('new', 8), key('old', 7)]);
    expect(rotated.locks.writeLeases.readSigned(old.signedToken ?? '', A, 'ann')).toEqual({ token: old.fencingToken });
    expect((await rotated.acquire(B, {}, ann)).signedToken).toContain('.new.');
    expect(signedLab([key('new', 8)]).locks.writeLeases.readSigned(old.signedToken ?? '', A, 'ann')).toBe('forged');
  });

  it('of several resources is good for each of them', async () => {
    const lab = signedLab();
    const lease = await lab.acquire([A, B], {}, ann);
    for (const where of [A, B])
      expect(lab.locks.writeLeases.readSigned(lease.signedToken ?? '', where, 'ann')).toEqual({ token: lease.fencingToken });
    expect(lab.locks.writeLeases.readSigned(lease.signedToken ?? '', resource('c'), 'ann')).toBe('forged');
  });

  it('of any other form is invalid, and nothing that is sent makes reading it throw', () => {
    const lab = signedLab();
    for (const text of [
      '',
      '7',
      '07.x.exclusive.k1.AAAA',
      '7.x.exclusive.k1',
      `7.x.other.k1.${'A'.repeat(43)}`,
      `9999999999999999999.x.shared.k1.${'A'.repeat(43)}`,
    ]) {
      expect(lab.locks.writeLeases.readSigned(text, A, 'ann')).toBe('invalid');
    }
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(lab.locks.writeLeases.readSigned(text, A, 'ann')).toBe('invalid');
      }),
    );
  });
});
