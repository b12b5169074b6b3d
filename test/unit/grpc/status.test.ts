import { readFileSync } from 'node:fs';
import { type ServiceError, status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES, type ErrorCode, GatewayError, refuse } from '../../../src/domain/errors.ts';
import { loadContract } from '../../../src/grpc/contract.ts';
import { errorStatus } from '../../../src/grpc/error-status.ts';
import { GRPC_STATUS } from '../../../src/grpc/status.ts';
import { statusOf } from '../../../src/http/status.ts';
import { detailsOf } from '../../support/grpc-client.ts';

const OF_STATUS: Readonly<Record<number, status>> = {
  400: status.INVALID_ARGUMENT,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  404: status.NOT_FOUND,
  409: status.FAILED_PRECONDITION,
  412: status.FAILED_PRECONDITION,
  429: status.RESOURCE_EXHAUSTED,
  500: status.INTERNAL,
  503: status.UNAVAILABLE,
};
const OWN: Partial<Readonly<Record<ErrorCode, status>>> = {
  deadlock: status.ABORTED,
  upgrade_conflict: status.ABORTED,
  outcome_unknown: status.UNKNOWN,
};

describe('the table of statuses', () => {
  it.each(ERROR_CODES.filter((code) => statusOf(code) in OF_STATUS))('%s is what the contract says of its HTTP status', (code) => {
    expect(GRPC_STATUS[code]).toBe(OWN[code] ?? OF_STATUS[statusOf(code)]);
  });

  it('is the table of docs/grpc.md', () => {
    const rows = [...readFileSync('docs/grpc.md', 'utf8').matchAll(/^\| `(\w+)` \| `([A-Z_]+)` \|$/gm)].map(([, code, name]) => [code, name]);
    expect(rows.length).toBeGreaterThan(20);
    expect(rows).toEqual(rows.map(([code]) => [code, status[GRPC_STATUS[code as ErrorCode]]]));
  });

  it('no code leaves as OK, as cancelled by the client, or as lost data', () => {
    for (const code of ERROR_CODES) expect([status.OK, status.CANCELLED, status.DATA_LOSS]).not.toContain(GRPC_STATUS[code]);
  });
});

describe('the trailer of a refusal', () => {
  const contract = loadContract();
  const sent = (error: GatewayError) =>
    errorStatus(contract, error, { requestId: 'req_1', retryAfterMs: error.retryAfterMs }) as unknown as ServiceError;

  it('has ErrorInfo with code, domain, members and request id', () => {
    const error = sent(
      refuse('lock_not_acquired', 'Somebody else has it.', { queue_length: 2, holder_client_id: null, resource: 'v/a', cycle: [{ a: 1 }] }),
    );
    expect(error.code).toBe(status.FAILED_PRECONDITION);
    expect(detailsOf(error)).toEqual([
      {
        type: 'google.rpc.ErrorInfo',
        message: {
          reason: 'lock_not_acquired',
          domain: 'fencegate',
          metadata: { queue_length: '2', holder_client_id: 'null', resource: 'v/a', cycle: '[{"a":1}]', request_id: 'req_1' },
        },
      },
    ]);
  });

  it('has RetryInfo where the refusal says when to come again, rounded up', () => {
    const [, retry] = detailsOf(sent(new GatewayError('queue_full', { detail: 'Full.', retryAfterMs: 1_500.2 })));
    expect(retry).toMatchObject({ type: 'google.rpc.RetryInfo', message: { retry_delay: { seconds: '1', nanos: 501_000_000 } } });
  });

  it('words that are not ASCII arrive as they were', () => {
    const [info] = detailsOf(sent(refuse('invalid_path', 'Größe', { name: 'ü' })));
    expect(info?.message).toMatchObject({ metadata: { name: 'ü' } });
  });
});
