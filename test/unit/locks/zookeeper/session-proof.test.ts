import { expect, it } from 'vitest';
import { LIMITS } from '../../../../src/domain/limits.ts';
import { Contact } from '../../../../src/locks/zookeeper/contact.ts';
import { SessionProof } from '../../../../src/locks/zookeeper/session-proof.ts';
import { type ZkClient, ZkError } from '../../../../src/locks/zookeeper/zk-client.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';

const SESSION_MS = 15_000;

it('proves the session at once when the connection came back, also while a proof over the one before is not yet given up', async () => {
  const clock = new FakeClock();
  const contact = new Contact({ clock, sessionMs: SESSION_MS, provenMs: clock.monotonicMs(), onState: () => undefined });
  let version = 0;
  let giveUp: (thrown: Error) => void = () => undefined;
  const stat = (): { readonly stat: { readonly version: number } } => ({ stat: { version } });
  const client = {
    get: async () => stat(),
    set: () => new Promise((_resolve, reject) => (giveUp = reject)),
  };
  const proof = new SessionProof({ clock, client: client as unknown as ZkClient, path: '/own', contact, sessionMs: SESSION_MS });
  proof.now();
  contact.doubt();
  clock.advance(1);
  client.set = async () => {
    version += 1;
    return stat();
  };
  proof.now();
  giveUp(new ZkError('unknown', 'the connection was lost'));
  await settle();
  expect(contact.state).toBe('reconnected');
  proof.stop();
  contact.stop();
});

it('proves the session a moment later when the server that it came back to had not heard of its last proof, whose answer was lost', async () => {
  const clock = new FakeClock();
  const contact = new Contact({ clock, sessionMs: SESSION_MS, provenMs: clock.monotonicMs(), onState: () => undefined });
  /** What is committed, and what the follower knows that answers reads. */
  let [version, heard, loses] = [0, 0, true];
  const client = {
    state: 'connected',
    get: async () => ({ stat: { version: heard } }),
    set: async (_path: string, _data: Uint8Array, expected: number) => {
      if (expected !== version) throw new ZkError('bad_version', 'set: bad version (-103)');
      version += 1;
      if (loses) throw new ZkError('unknown', 'the connection was lost');
      return { stat: { version } };
    },
  };
  const proof = new SessionProof({ clock, client: client as unknown as ZkClient, path: '/own', contact, sessionMs: SESSION_MS });
  proof.now();
  contact.doubt();
  await settle();
  loses = false;
  clock.advance(1);
  proof.now();
  await settle();
  expect(contact.state).toBe('suspended');
  heard = version;
  clock.advance(LIMITS.zookeeperRetryMs);
  await settle();
  expect(contact.state).toBe('reconnected');
  proof.stop();
  contact.stop();
});
