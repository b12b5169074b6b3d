import { describe, expect, it } from 'vitest';
import type { Contending } from '../../../support/protocol-process.ts';
import { explore } from '../../../support/protocol-world.ts';
import { TIER } from '../../../support/tier.ts';

const writer = (priority = 5): Contending => ({ mode: 'exclusive', priority });
const reader = (priority = 5): Contending => ({ mode: 'shared', priority });

/** A world of three is walked through in some seconds, with more faults in a minute; a slow machine may take ten times that. */
const WORLD_MS_MAX = 600_000;

const PAIRS = [
  [writer(), writer()],
  [writer(), writer(9)],
  [writer(), reader()],
  [reader(), writer(9)],
  [reader(), reader()],
];

const TRIPLES = [
  [writer(), writer(7), writer(9)],
  [reader(), writer(), reader()],
  [writer(), reader(), reader(9)],
];

const ahead = (contender: Contending): Contending => ({ ...contender, ahead: true });

describe('every order of events in small worlds', () => {
  it.each(PAIRS)(
    'finds no two holders, no wrong token and nobody asleep for ever among %j and %j, with lost replies, dead sessions and deletes',
    (...contenders) => {
      const { violation, worlds, heldBy } = explore({ contenders, faultsMax: TIER.protocolFaults });
      expect(violation).toBeNull();
      expect(worlds).toBeGreaterThan(500);
      expect(heldBy.size).toBe(2);
    },
    WORLD_MS_MAX,
  );

  it.each(TRIPLES.slice(0, TIER.protocolTriples))(
    'nor among %j, %j and %j, with the same faults',
    (...contenders) => {
      const { violation, worlds, heldBy } = explore({ contenders, faultsMax: TIER.protocolTripleFaults });
      expect(violation).toBeNull();
      expect(worlds).toBeGreaterThan(20_000);
      expect(heldBy.size).toBe(3);
    },
    WORLD_MS_MAX,
  );

  it.each([...PAIRS.map((pair) => pair.map(ahead)), [writer(), ahead(writer(9))], [ahead(writer()), writer(9)]])(
    'nor among %j and %j, who send a grant with their contender for a node that is as they know it',
    (...contenders) => {
      const { violation, worlds, heldBy } = explore({ contenders, faultsMax: TIER.protocolFaults });
      expect(violation).toBeNull();
      expect(worlds).toBeGreaterThan(2_000);
      expect(heldBy.size).toBe(2);
    },
    WORLD_MS_MAX,
  );

  it.each([
    { contenders: [writer(), ahead(writer(9)), writer(7)], faultsMax: TIER.protocolAheadFaults },
    ...TRIPLES.slice(1, TIER.protocolTriples).map((triple) => ({ contenders: triple.map(ahead), faultsMax: 0 })),
  ])(
    'nor among $contenders, some of whom do, with $faultsMax faults',
    ({ contenders, faultsMax }) => {
      const { violation, worlds, heldBy } = explore({ contenders, faultsMax });
      expect(violation).toBeNull();
      expect(worlds).toBeGreaterThan(10_000);
      expect(heldBy.size).toBe(3);
    },
    WORLD_MS_MAX,
  );

  it(
    'finds two holders when the children are read before the state that names the holders',
    () => {
      expect(explore({ contenders: [writer(), writer(7), writer(9)], faultsMax: 0, readsSwapped: true }).violation).toBe('two holders');
    },
    WORLD_MS_MAX,
  );
});
