import { CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { failureOf as failureOfCommand, isUnavailable } from '../../../src/cli/failure.ts';
import { Interrupted } from '../../../src/cli/interruptible.ts';
import { UsageError } from '../../../src/cli/usage-error.ts';
import { STATUS_BY_CODE } from '../../../src/client/contract/codes.ts';
import { FencegateError, type FencegateErrorCode, isErrorCode } from '../../../src/client/errors.ts';
import { unreachable } from '../../../src/client/unreachable.ts';
import { ConfigError } from '../../../src/config/problems.ts';

const refusal = (code: FencegateErrorCode): FencegateError =>
  new FencegateError(code, { detail: 'No.', status: isErrorCode(code) ? STATUS_BY_CODE[code] : null, requestId: 'req_1' });

/** Of a command that writes. */
const failureOf = (thrown: unknown) => failureOfCommand(thrown, true);

describe('how a command fails', () => {
  it.each([
    ['stale_token', 65],
    ['lease_ended', 65],
    ['token_required', 65],
    ['precondition_failed', 65],
    ['directory_not_empty', 65],
    ['gateway_unreachable', 69],
    ['outcome_unknown', 69],
    ['draining', 69],
    ['lease_lost', 70],
    ['lease_not_held', 70],
    ['lock_not_acquired', 75],
    ['resource_locked', 75],
    ['deadlock', 75],
    ['unauthenticated', 77],
    ['forbidden', 77],
    ['ttl_out_of_range', 64],
    ['not_found', 1],
    ['is_a_directory', 65],
    ['rate_limited', 69],
    ['too_many_leases', 69],
    ['too_many_sessions', 69],
    ['too_many_uploads', 69],
    ['not_lease_owner', 77],
  ] as const)('%s is exit code %d', (code, exitCode) => {
    expect(failureOf(refusal(code))?.exitCode).toBe(exitCode);
  });

  it('every code of the gateway is one of the documented exit codes', () => {
    const codes = Object.keys(STATUS_BY_CODE).filter(isErrorCode);
    expect(new Set(codes.map((code) => failureOf(refusal(code))?.exitCode))).toEqual(new Set([1, 64, 65, 69, 70, 75, 77]));
  });

  it('a command that writes nothing never says that a write was refused: it could not be done', () => {
    const codes = Object.keys(STATUS_BY_CODE).filter(isErrorCode);
    expect(codes.filter((code) => failureOfCommand(refusal(code), false)?.exitCode === 65)).toEqual([]);
    for (const code of ['is_a_directory', 'symbolic_link', 'special_file', 'not_a_directory'] as const)
      expect(failureOfCommand(refusal(code), false)?.exitCode).toBe(1);
    expect(failureOfCommand(refusal('forbidden'), false)?.exitCode).toBe(77);
  });

  it('says what is wrong, which request it was, and what to do next', () => {
    expect(failureOf(refusal('token_required'))?.lines).toEqual([
      'token_required: No. [request req_1]',
      'next: run it under fencegate exec --lock VOL/PATH',
    ]);
  });

  it.each([
    ['SELF_SIGNED_CERT_IN_CHAIN', 'FENCEGATE_CA_FILE'],
    ['CERT_HAS_EXPIRED', 'renewed'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'FENCEGATE_URL'],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'FENCEGATE_CERT_FILE'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'write http://'],
  ])('a gateway behind %s is met by what the next step says', (reason, next) => {
    const cause = Object.assign(new Error(reason), { code: reason });
    const failure = failureOf(unreachable(reason, cause, { requestId: 'r1' }));
    expect(failure).toMatchObject({ exitCode: 69, lines: [expect.stringContaining(`(${reason}).`), expect.stringContaining(next)] });
    // Nobody was told anything, so there is nothing to look for.
    expect(failure?.lines.join('')).not.toContain('r1');
  });

  it('a gateway that TLS keeps from us will not be back soon, as one may be that is away', () => {
    const refused = unreachable('CERT_HAS_EXPIRED', Object.assign(new Error('expired'), { code: 'CERT_HAS_EXPIRED' }));
    expect([isUnavailable(refused), isUnavailable(unreachable('ECONNREFUSED', new Error('refused'))), isUnavailable(refusal('draining'))]).toEqual([
      false,
      true,
      true,
    ]);
  });

  it('what became of an order that has no answer is to be looked up by its request', () => {
    const [says, next] = failureOf(unreachable('ECONNRESET', new Error('cut'), { requestId: 'r1' }))?.lines ?? [];
    expect(says).toBe('gateway_unreachable: The gateway was not reached: ECONNRESET. [request r1]');
    expect(next).toMatch(/fencegate audit --request r1 tells what became of it$/);
    expect(failureOf(new Interrupted('SIGTERM').during('r1'))).toEqual({
      exitCode: 143,
      lines: [
        'interrupted before the gateway answered: what became of it is not known',
        'next: fencegate audit --request r1 tells what became of it',
      ],
    });
  });

  it('names who is in the way by another lock recipe, once, where nobody holds a lease', () => {
    const refused = (detail: string, members: object): string | undefined =>
      failureOf(new FencegateError('lock_not_acquired', { detail, status: 409, members: { ...members } }))?.lines[0];
    const foreign = { foreign_contenders: ['kazoo__lock__0000000003', 'x'] };
    expect(refused('It ended.', foreign)).toBe(
      'lock_not_acquired: It ended. Another program stands there, without a lease: kazoo__lock__0000000003, x.',
    );
    expect(refused('It is /locks/v/a/kazoo__lock__0000000003.', foreign)).not.toContain('Another program');
    expect(refused('It ended.', { ...foreign, holder_client_id: 'ours' })).toBe('lock_not_acquired: It ended. Held by ours.');
    expect(refused('It ended.', { foreign_contenders: [] })).toBe('lock_not_acquired: It ended.');
  });

  it('lets no label of a stranger rule the terminal', () => {
    const held = new FencegateError('resource_locked', { detail: 'Held.', status: 423, members: { holder_client_id: 'a\u001b[2J' } });
    expect(failureOf(held)?.lines[0]).toBe(String.raw`resource_locked: Held. Held by a\x1b[2J.`);
  });

  it('knows usage, configuration, signals and system calls; the rest is thrown on', () => {
    expect(failureOf(new UsageError('so'))).toEqual({ exitCode: 64, lines: ['so'] });
    expect(failureOf(new CommanderError(1, 'commander.unknownOption', 'x'))?.exitCode).toBe(64);
    expect(failureOf(new CommanderError(0, 'commander.helpDisplayed', 'x'))?.exitCode).toBe(0);
    expect(failureOf(new ConfigError(['a', 'b']))).toEqual({ exitCode: 2, lines: ['a', 'b'] });
    expect(failureOf(new Interrupted('SIGINT'))).toEqual({ exitCode: 130, lines: [] });
    expect(failureOf(Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT', syscall: 'open' }))?.exitCode).toBe(1);
    expect(failureOf(new TypeError('a defect'))).toBeNull();
  });
});
