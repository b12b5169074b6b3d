/**
 * A connection that TLS refused, as Node and OpenSSL name it: one side does not trust the other, or they speak no common language. It is the same next
 * time, so nothing is gained by trying again.
 */
export interface TlsRefusal {
  /** What is to be looked at. */
  readonly about: 'name' | 'date' | 'authority' | 'own_certificate' | 'plain' | 'settings';
  /** For people; follows "The gateway was not reached: ". */
  readonly says: string;
}

const PLAIN: TlsRefusal = { about: 'plain', says: 'what answers there knows no TLS' };
const NAME: TlsRefusal = { about: 'name', says: 'its certificate is for another name' };
const DATE: TlsRefusal = { about: 'date', says: 'its certificate is out of date, or not valid yet' };
const AUTHORITY: TlsRefusal = { about: 'authority', says: 'its certificate is not trusted here' };
const WANTED: TlsRefusal = { about: 'own_certificate', says: 'it wants a certificate of its client' };
const OWN: TlsRefusal = { about: 'own_certificate', says: 'it does not accept the certificate of its client' };
const SETTINGS: TlsRefusal = { about: 'settings', says: 'TLS was refused' };

/** The first that fits. What is broken or cut on its way is no refusal. */
const REFUSALS: readonly (readonly [reason: RegExp, refusal: TlsRefusal | null])[] = [
  [/^ERR_(SSL|TLS)_.*(MAC$|INTERNAL_ERROR|UNEXPECTED_EOF|TIMEOUT|CLOSE_NOTIFY|USER_CANCELED|SHUTDOWN)/, null],
  [/^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/, PLAIN],
  [/^(ERR_TLS_CERT_ALTNAME_\w+|HOSTNAME_MISMATCH)$/, NAME],
  [/^(CERT|CRL)_(HAS_EXPIRED|NOT_YET_VALID)$/, DATE],
  [/^ERR_SSL_\w*ALERT_CERTIFICATE_REQUIRED$/, WANTED],
  [/^ERR_SSL_\w*ALERT_(NO_CERTIFICATE|\w*CERTIFICATE\w*|UNKNOWN_CA|ACCESS_DENIED)$/, OWN],
  [/^CERTIFICATE_NOT_ACCEPTED$/, OWN],
  [/^(ERR_SSL_CERTIFICATE_VERIFY_FAILED|\w*(SELF_SIGNED_CERT|ISSUER_CERT|LEAF_SIGNATURE|SIGNATURE_FAILURE)\w*)$/, AUTHORITY],
  [/^(CERT_(UNTRUSTED|REJECTED|REVOKED|CHAIN_TOO_LONG)|INVALID_(CA|PURPOSE)|PATH_LENGTH_EXCEEDED|UNABLE_TO_\w+)$/, AUTHORITY],
  [/^ERR_(SSL|TLS|OSSL)_/, SETTINGS],
];

/** `reason`: a code; `null` for what is no refusal of TLS. */
export function tlsRefusal(reason: string): TlsRefusal | null {
  return REFUSALS.find(([pattern]) => pattern.test(reason))?.[1] ?? null;
}
