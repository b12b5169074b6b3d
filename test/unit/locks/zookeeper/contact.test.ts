import { describe, expect, it } from 'vitest';
import { Contact } from '../../../../src/locks/zookeeper/contact.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

function contactOf(sessionMs = 15_000) {
  const clock = new FakeClock();
  const states: string[] = [];
  const contact = new Contact({ clock, sessionMs, provenMs: clock.monotonicMs(), onState: (state) => states.push(state) });
  return { clock, contact, states };
}

describe('contact with the ensemble', () => {
  it('is suspended after a third of the session without proof, and lost for good after two thirds', () => {
    const { clock, contact, states } = contactOf();
    clock.advance(4_999);
    expect(contact.usable).toBe(true);
    clock.advance(1);
    expect(contact.usable).toBe(false);
    clock.advance(4_999);
    expect(contact.state).toBe('suspended');
    clock.advance(1);
    expect(states).toEqual(['suspended', 'lost']);
    contact.proven(clock.monotonicMs());
    expect(contact.state).toBe('lost');
  });

  it('counts a proof from before its request was sent', () => {
    const { clock, contact } = contactOf();
    const sentMs = clock.monotonicMs();
    clock.advance(4_000);
    contact.proven(sentMs + 1);
    clock.advance(1_001);
    expect(contact.state).toBe('suspended');
  });

  it('goes on with the same session when it is proven in time', () => {
    const { clock, contact, states } = contactOf();
    clock.advance(6_000);
    contact.proven(clock.monotonicMs());
    expect(contact.usable).toBe(true);
    clock.advance(1_000);
    contact.proven(clock.monotonicMs());
    expect(states).toEqual(['suspended', 'reconnected', 'connected']);
    expect(contact.remainderMs).toBe(10_000);
  });

  it('is judged at use: a process that slept past its session knows before any timer ran', () => {
    const clock = new FakeClock();
    let nowMs = 0;
    const asleep = { monotonicMs: () => nowMs, wallMs: () => 0, machine: () => clock.machine(), after: clock.after.bind(clock) };
    const contact = new Contact({ clock: asleep, sessionMs: 15_000, provenMs: 0, onState: () => undefined });
    nowMs = 60_000;
    expect(contact.state).toBe('lost');
    expect(contact.remainderMs).toBe(0);
  });
});
