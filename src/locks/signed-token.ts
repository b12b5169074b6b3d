import { createHmac, timingSafeEqual } from 'node:crypto';
import { type FencingToken, parseFencingToken } from '../domain/fencing-token.ts';
import type { LeaseMode } from '../domain/lease.ts';
import type { Resource } from '../domain/resource.ts';

/** `<decimal>.<lease ref>.<mode>.<key id>.<base64url HMAC-SHA-256>` (policy `tokens: signed`). */
export interface SigningKey {
  readonly id: string;
  readonly secret: Uint8Array;
}

export interface SignedClaims {
  readonly token: FencingToken;
  readonly leaseRef: string;
  readonly mode: LeaseMode;
  /** All resources of the lease, in canonical order. */
  readonly resources: readonly Resource[];
  readonly principal: string;
}

const FORM = /^([1-9][0-9]{0,18})\.([A-Za-z0-9_-]{1,64})\.(exclusive|shared)\.([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{43})$/;

/** The first key signs, all verify: so a key can be replaced while tokens of the old one are still about. */
export class SignedTokens {
  readonly #coordinatorId: () => string;
  readonly #keys: readonly SigningKey[];

  constructor(coordinatorId: () => string, keys: readonly SigningKey[]) {
    this.#coordinatorId = coordinatorId;
    this.#keys = keys;
  }

  /** `null` when there is no key. */
  sign(claims: SignedClaims): string | null {
    const key = this.#keys[0];
    if (key === undefined) return null;
    return `${claims.token}.${claims.leaseRef}.${claims.mode}.${key.id}.${this.#mac(key, claims).toString('base64url')}`;
  }

  /**
   * The fields of a signed token, not yet verified; `null` when the text has not that form. The caller knows which resources the
   * lease has, which the text does not say.
   */
  parse(
    text: string,
  ): { readonly token: FencingToken; readonly leaseRef: string; readonly mode: LeaseMode; readonly keyId: string; readonly mac: Buffer } | null {
    const [, decimal = '', leaseRef = '', mode = '', keyId = '', mac = ''] = FORM.exec(text) ?? [];
    const token = parseFencingToken(decimal);
    if (token === undefined) return null;
    const bytes = Buffer.from(mac, 'base64url');
    // The last character has two bits that no byte is made of: with others than zero it would be a second spelling of the same token.
    if (bytes.toString('base64url') !== mac) return null;
    return { token, leaseRef, mode: mode === 'shared' ? 'shared' : 'exclusive', keyId, mac: bytes };
  }

  /** True when a key of ours made the signature over exactly these claims. Constant time. */
  verifies(keyId: string, mac: Uint8Array, claims: SignedClaims): boolean {
    const key = this.#keys.find(({ id }) => id === keyId);
    if (key === undefined) return false;
    const expected = this.#mac(key, claims);
    return mac.length === expected.length && timingSafeEqual(mac, expected);
  }

  #mac(key: SigningKey, { token, leaseRef, mode, resources, principal }: SignedClaims): Buffer {
    // JSON keeps the fields apart: no choice of names makes two different claims the same bytes.
    const fields = [
      'fencegate token v1',
      this.#coordinatorId(),
      token.toString(),
      leaseRef,
      mode,
      key.id,
      principal,
      resources.map(({ key: name }) => name),
    ];
    return createHmac('sha256', key.secret).update(JSON.stringify(fields)).digest();
  }
}
