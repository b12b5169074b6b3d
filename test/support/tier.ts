/**
 * How much the tests try. `npm test` is the short tier; `npm run test:long` (`TEST_TIER=long`) tries more of the same: other
 * numbers, never other rules.
 */
import { LIMITS } from '../../src/domain/limits.ts';
import { STEPS } from '../../src/domain/steps.ts';

const long = process.env['TEST_TIER'] === 'long';

export const TIER = {
  /** Runs of one property (fast-check). */
  propertyRuns: long ? 5_000 : 200,
  /** Seeds of the simulation. */
  simulationSeeds: long ? 20_000 : 1_000,
  /** Seeds of the simulation of two gateways at an ensemble. */
  brokenPipes: long ? 20_000 : 300,
  /** Whether seeds are new in each run. */
  freshSeeds: long,
  /** Rounds of a race on real files or sockets. */
  raceRounds: long ? 200 : 10,
  /** Take-overs between two NFS clients, with every kind of write in each. All of the long ones take hours: `TEST_TAKE_OVERS` has them in pieces. */
  nfsTakeOvers: Number(process.env['TEST_TAKE_OVERS'] ?? (long ? 200 : 1)),
  /** Whether an NFS server goes in every way at every moment, or only in some. */
  everyOutage: long,
  /** Replaces under the eyes of a reader on another NFS client. */
  nfsReplaces: long ? 1_000 : 50,
  /** Uploads of 50 MB that a proxy passes on. */
  proxiedRounds: long ? 200 : 5,
  /** Clients in a race. */
  raceClients: 32,
  /** Whether each kind of write also meets each fault alone, and not only together with all the others. */
  eachAlone: long,
  /** Rounds of stopping a gateway with each kind of write at another step; by how many steps each is moved on. All of them: each kind at each step. */
  stopShifts: long ? [...STEPS.keys()] : [0, 3, 6, 9, 12],
  /** Rounds of killing or stopping a busy gateway at an instant that nobody chose. */
  killRounds: long ? 60 : 2,
  /** Sessions that come back at once after a restart. */
  returningSessions: long ? 10_000 : 1_500,
  /** How many sessions, leases and holds fill the house: as many as there may be, or as the gateway of the test is told. */
  fullHouse: long
    ? {
        sessionsPerPrincipalMax: LIMITS.sessionsPerPrincipalMax,
        leasesPerSessionMax: LIMITS.leasesPerSessionMax,
        holdsPerLeaseMax: LIMITS.holdsPerLeaseMax,
      }
    : { sessionsPerPrincipalMax: 300, leasesPerSessionMax: 200, holdsPerLeaseMax: 50 },
  /** Faults in one small world of the ZooKeeper recipe. */
  protocolFaults: long ? 3 : 1,
  /** Faults in one with three contenders. */
  protocolTripleFaults: long ? 3 : 1,
  /** In one where one of three sends a grant with its contender. Where all do, the worlds are ten times as many. */
  protocolAheadFaults: long ? 1 : 0,
  /** How many kinds of three contenders are walked through. */
  protocolTriples: long ? 3 : 1,
  /** Times that the link to the ensemble is cut and mended. */
  linkFlaps: long ? 50 : 5,
  /** Contenders for one name whose wake-ups are counted. */
  contenders: long ? 200 : 40,
  /** Times that the leader of an ensemble is killed under held and contended locks. */
  leaderKills: long ? 10 : 1,
  /** Turns that another client of the ensemble takes while the gateway contends for the same node. */
  kazooRounds: long ? 3_000 : 40,
  /** Appends of each client. */
  appendsEach: long ? 1_000 : 40,
} as const;
