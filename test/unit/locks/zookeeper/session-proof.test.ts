import { expect, it } from 'vitest';
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
