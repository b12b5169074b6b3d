/**
 * How much the tests try. `npm test` is the short tier; `npm run test:long` (`TEST_TIER=long`) tries more of the same: other
 * numbers, never other rules.
 */
const long = process.env['TEST_TIER'] === 'long';

export const TIER = {
  /** Runs of one property (fast-check). */
  propertyRuns: long ? 5_000 : 200,
  /** Seeds of the simulation. */
  simulationSeeds: long ? 3_000 : 60,
  /** Rounds of a race on real files or sockets. */
  raceRounds: long ? 200 : 10,
  /** Clients in a race. */
  raceClients: 32,
} as const;
