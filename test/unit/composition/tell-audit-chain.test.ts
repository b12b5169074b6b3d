import { expect, it } from 'vitest';
import { tellHead } from '../../../src/composition/tell-audit-chain.ts';
import { createLogger } from '../../../src/observability/logger.ts';
import { FakeClock } from '../../support/fake-clock.ts';

it('the head of the audit chain goes to the log each minute, so that a tail that is cut off shows there', () => {
  const clock = new FakeClock();
  const lines: string[] = [];
  let seq = 7;
  tellHead(clock, { head: () => ({ seq, hash: `hash-${seq}` }) }, createLogger('info', { write: (line) => void lines.push(line) }));
  clock.advance(59_999);
  expect(lines).toEqual([]);
  clock.advance(1);
  seq = 9;
  clock.advance(60_000);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'info', head_seq: 7, head_hash: 'hash-7' },
    { level: 'info', head_seq: 9, head_hash: 'hash-9' },
  ]);
});
