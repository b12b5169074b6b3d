import { describe, expect, it } from 'vitest';
import { messageType } from '../../support/grpc-client.ts';

/** The numbers of the contract, as bytes: written and read by hand here, not by the library that serves them. */

const field = (number: number, wire: 0 | 2): number[] => varint(BigInt(number * 8 + wire));
const varint = (value: bigint): number[] => {
  const rest = BigInt.asUintN(64, value);
  return rest < 128n ? [Number(rest)] : [Number(rest % 128n) + 128, ...varint(rest / 128n)];
};
const int = (number: number, value: bigint): number[] => [...field(number, 0), ...varint(value)];
const nested = (number: number, bytes: readonly number[]): number[] => [...field(number, 2), ...varint(BigInt(bytes.length)), ...bytes];
const text = (number: number, value: string): number[] => nested(number, [...Buffer.from(value)]);

describe('RecordLockRequest', () => {
  const type = messageType('fencegate.v1.RecordLockRequest');
  const bytes = Buffer.from([
    ...text(1, 'v/a'),
    ...text(2, 'client'),
    ...int(3, 30_000n),
    ...int(4, 1n),
    ...int(5, 2n),
    ...int(6, 0n),
    ...int(7, 0n),
    ...text(8, 'session'),
    ...int(9, 9_007_199_254_740_993n),
    ...text(10, 'hold'),
    ...int(11, 5n),
  ]);

  it('has its eleven fields under their numbers', () => {
    expect(type.deserialize(bytes)).toMatchObject({
      resource_path: 'v/a',
      client_id: 'client',
      session_timeout_ms: '30000',
      wait_blocking: true,
      mode: 'LOCK_MODE_SHARED',
      priority: 0,
      wait_limit_ms: '0',
      session_id: 'session',
      max_hold_ms: '9007199254740993',
      hold_id: 'hold',
      lock_delay_ms: '5',
    });
    expect([...type.serialize(type.deserialize(bytes))]).toEqual([...bytes]);
  });

  it('four fields are enough, as the contract was first written; what is left out is told from zero', () => {
    const old = Buffer.from([...text(1, 'v/a'), ...text(2, 'c'), ...int(3, 30_000n), ...int(4, 1n)]);
    const message = type.deserialize(old);
    expect(message).toMatchObject({ resource_path: 'v/a', client_id: 'c', session_timeout_ms: '30000', wait_blocking: true });
    for (const name of ['priority', 'wait_limit_ms', 'max_hold_ms', 'lock_delay_ms']) expect(message[name]).toBeUndefined();
  });

  it('fields that this version does not know are left alone', () => {
    const newer = Buffer.from([...text(1, 'v/a'), ...text(99, 'later')]);
    expect(type.deserialize(newer)).toMatchObject({ resource_path: 'v/a' });
  });
});

describe('RecordLockResponse', () => {
  const type = messageType('fencegate.v1.RecordLockResponse');

  it('has its thirteen fields under their numbers, and the largest token without loss', () => {
    const message = {
      acquired: true,
      acquired_znode_path: '/locks/v/a/_c_1',
      fencing_token: '9223372036854775807',
      lease_expires_at: '1900000000000',
      lease_id: 'lease',
      session_id: 'session',
      state: 'LEASE_STATE_HELD',
      queue_position: 3,
      signed_token: 'signed',
      reason: 'why',
      hold_count: 2,
      expires_in_ms: '29999',
      hold_expires_in_ms: '59999',
    };
    const bytes = [
      ...int(1, 1n),
      ...text(2, '/locks/v/a/_c_1'),
      ...int(3, 9_223_372_036_854_775_807n),
      ...int(4, 1_900_000_000_000n),
      ...text(5, 'lease'),
      ...text(6, 'session'),
      ...int(7, 2n),
      ...int(8, 3n),
      ...text(9, 'signed'),
      ...text(10, 'why'),
      ...int(11, 2n),
      ...int(12, 29_999n),
      ...int(13, 59_999n),
    ];
    expect([...type.serialize(message)]).toEqual(bytes);
    expect(type.deserialize(Buffer.from(bytes))).toEqual(message);
  });
});

describe('the other messages', () => {
  const cases: readonly (readonly [string, object, number[]])[] = [
    ['RenewLockRequest', { lease_id: 'l', ttl_ms: '1000' }, [...text(1, 'l'), ...int(2, 1_000n)]],
    [
      'ReleaseLockRequest',
      { lease_id: 'l', resource_path: 'v/a', fencing_token: '7', hold_id: 'h', all: true },
      [...text(1, 'l'), ...text(2, 'v/a'), ...int(3, 7n), ...text(4, 'h'), ...int(5, 1n)],
    ],
    ['ReleaseLockResponse', { released: true }, int(1, 1n)],
    ['GetLockRequest', { resource_path: 'v/a' }, text(1, 'v/a')],
    ['WatchLockRequest', { resource_path: 'v/a', from_seq: '12' }, [...text(1, 'v/a'), ...int(2, 12n)]],
    ['KeepAliveRequest', { session_ids: ['a', 'b'] }, [...text(1, 'a'), ...text(1, 'b')]],
    [
      'KeepAliveResponse',
      { session_id: 'a', expires_in_ms: '5', lost_lease_ids: ['x', 'y'], reason: 'r' },
      [...text(1, 'a'), ...int(2, 5n), ...text(3, 'x'), ...text(3, 'y'), ...text(4, 'r')],
    ],
    [
      'LockParty',
      { lease_ref: 'r', client_id: 'c', since: '1', expires_in_ms: '2', priority: 3, znode: 'z', ttl_ms: '4', lock_delay_ms: '5', reason: 'why' },
      [
        ...text(1, 'r'),
        ...text(2, 'c'),
        ...int(3, 1n),
        ...int(4, 2n),
        ...int(5, 3n),
        ...text(6, 'z'),
        ...int(7, 4n),
        ...int(8, 5n),
        ...text(9, 'why'),
      ],
    ],
    [
      'LockInfo',
      {
        resource_path: 'v/a',
        mode: 'LOCK_MODE_EXCLUSIVE',
        high_water_mark: '9',
        holders: [],
        waiters: [],
        queue_length: 1,
        wait_estimate_ms: '0',
        znode_path: 'z',
        held_back_ms: '5',
        foreign_contenders: ['x', 'y'],
        fence_level: 'FENCE_LEVEL_INCARNATION',
      },
      [
        ...text(1, 'v/a'),
        ...int(2, 1n),
        ...int(3, 9n),
        ...int(6, 1n),
        ...int(7, 0n),
        ...text(8, 'z'),
        ...int(9, 5n),
        ...text(10, 'x'),
        ...text(10, 'y'),
        ...int(11, 2n),
      ],
    ],
    [
      'LockEvent',
      {
        type: 'EXPIRED',
        seq: '1',
        at: '2',
        resource_path: 'v/a',
        lease_ref: 'r',
        client_id: 'c',
        mode: 'LOCK_MODE_SHARED',
        fencing_token: '8',
        reason: 'w',
        locks: [],
        cycle: [{ lease_ref: 'l', client_id: 'd', waits_for: 'v/b' }],
      },
      [
        ...int(1, 6n),
        ...int(2, 1n),
        ...int(3, 2n),
        ...text(4, 'v/a'),
        ...text(5, 'r'),
        ...text(6, 'c'),
        ...int(7, 2n),
        ...int(8, 8n),
        ...text(9, 'w'),
        ...nested(11, [...text(1, 'l'), ...text(2, 'd'), ...text(3, 'v/b')]),
      ],
    ],
  ];
  it.each(cases)('%s has its fields under their numbers', (name, message, bytes) => {
    const type = messageType(`fencegate.v1.${name}`);
    expect([...type.serialize(message)]).toEqual(bytes);
    expect(type.deserialize(Buffer.from(bytes))).toMatchObject(message);
  });
});
