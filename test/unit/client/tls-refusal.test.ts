import { EventEmitter } from 'node:events';
import type { ClientRequest } from 'node:http';
import { describe, expect, it } from 'vitest';
import { CertificateDrops } from '../../../src/client/certificate-drops.ts';
import { isFencegateError } from '../../../src/client/index.ts';
import { ruleOf } from '../../../src/client/retrying.ts';
import { tlsRefusal } from '../../../src/client/tls-refusal.ts';
import { reasonOf, unreachable, wasNeverSent } from '../../../src/client/unreachable.ts';

const failure = (code: string, message = code): Error => Object.assign(new Error(message), { code });

describe('a refusal of TLS', () => {
  it.each([
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'authority'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'authority'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'authority'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'authority'],
    ['CERT_SIGNATURE_FAILURE', 'authority'],
    ['CERT_REVOKED', 'authority'],
    ['INVALID_PURPOSE', 'authority'],
    ['CERT_HAS_EXPIRED', 'date'],
    ['CERT_NOT_YET_VALID', 'date'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'name'],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'own_certificate'],
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'own_certificate'],
    ['ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', 'own_certificate'],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED', 'own_certificate'],
    ['CERTIFICATE_NOT_ACCEPTED', 'own_certificate'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'plain'],
    ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'plain'],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'settings'],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'settings'],
    ['ERR_OSSL_EVP_UNSUPPORTED', 'settings'],
  ] as const)('%s is about the %s, and is final', (code, about) => {
    expect(tlsRefusal(code)?.about).toBe(about);
    const error = unreachable(code, failure(code), { requestId: 'r' });
    expect(error).toMatchObject({ code: 'gateway_unreachable', requestId: null, message: expect.stringContaining(`(${code}).`) });
    expect([ruleOf(error), wasNeverSent(error)]).toEqual([undefined, true]);
  });

  it.each([
    'ECONNREFUSED',
    'ECONNRESET',
    'UND_ERR_SOCKET',
    'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC',
    'ERR_SSL_SSLV3_ALERT_BAD_RECORD_MAC',
    'ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR',
    'ERR_SSL_UNEXPECTED_EOF_WHILE_READING',
    'ERR_TLS_HANDSHAKE_TIMEOUT',
  ])('%s may heal by itself', (code) => {
    expect(tlsRefusal(code)).toBeNull();
    expect(ruleOf(unreachable(code, failure(code)))).toBe('keyed');
  });

  it('is read from the words that come with a write, too, and from behind other errors', () => {
    const words = 'write EPROTO 40D7F0F7:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../ssl3_record.c:355:\n';
    expect(reasonOf(new TypeError('fetch failed', { cause: failure('EPROTO', words) }))).toBe('ERR_SSL_WRONG_VERSION_NUMBER');
    expect(reasonOf(failure('EPROTO', 'write EPROTO'))).toBe('EPROTO');
  });
});

describe('connections that are dropped with an own certificate', () => {
  const request = (drops: CertificateDrops) => {
    const one = new EventEmitter();
    const socket = new EventEmitter();
    const judge = drops.follow(one as ClientRequest);
    one.emit('socket', socket);
    return {
      secure: () => socket.emit('secureConnect'),
      answer: () => one.emit('response'),
      ends: (code: string): string => reasonOf(judge(failure(code))),
    };
  };
  const dropped = (drops: CertificateDrops, code = 'ECONNRESET'): string => {
    const one = request(drops);
    one.secure();
    return one.ends(code);
  };

  it('one after the other are dropped because of it', () => {
    const drops = new CertificateDrops();
    expect([dropped(drops), dropped(drops, 'EPIPE')]).toEqual(['ECONNRESET', 'CERTIFICATE_NOT_ACCEPTED']);
    expect(isFencegateError(unreachable('CERTIFICATE_NOT_ACCEPTED', null))).toBe(true);
  });

  it('together are what a gateway leaves that is killed', () => {
    const drops = new CertificateDrops();
    const all = [request(drops), request(drops), request(drops)];
    for (const one of all) one.secure();
    expect(all.map((one) => one.ends('ECONNRESET'))).toEqual(['ECONNRESET', 'ECONNRESET', 'ECONNRESET']);
  });

  it('with nobody there, or an answer, between them have another reason', () => {
    const drops = new CertificateDrops();
    dropped(drops);
    expect([request(drops).ends('ECONNREFUSED'), dropped(drops)]).toEqual(['ECONNREFUSED', 'ECONNRESET']);
    const answered = request(drops);
    answered.secure();
    answered.answer();
    expect(dropped(drops)).toBe('ECONNRESET');
  });

  it('before they stood, or after they carried another request, say nothing of it', () => {
    const drops = new CertificateDrops();
    expect([dropped(drops), request(drops).ends('ECONNRESET'), dropped(drops)]).toEqual(['ECONNRESET', 'ECONNRESET', 'ECONNRESET']);
  });
});
