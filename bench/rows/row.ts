import type { Memory } from '../measure/process-tree.ts';
import type { Needed } from '../place/packages.ts';
import type { Peer, RunningPeer, Stage } from '../stage.ts';

/** What one turn of one contestant gave. */
export interface Sample {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the server's processes by request. */
  readonly cpuMsPerRequest: number;
  /** What of it is the coordinator's servers', where there are any. */
  readonly ensembleCpuMsPerRequest?: number;
  /** What the coordinator's heap holds after a full collection, where that was asked. */
  readonly heapBytes?: number;
  /** Flushes of the block device by request; `null` where the device does not count them. */
  readonly flushesPerRequest: number | null;
  readonly bodyBytesSent: number;
  readonly memoryBefore: Memory;
  readonly memoryAfter: Memory;
  /** Near 1 the load driver was the limit. */
  readonly driverCpuShare: number;
}

/** One turn: what one contestant does in a row. */
export interface Turn {
  readonly contestant: string;
  /** What it works on: started before the first round. */
  readonly peer: Peer<RunningPeer>;
  /** Commands beyond those of the peer. */
  readonly needs?: readonly Needed[];
  run(stage: Stage, connections: number, length: TurnLength): Promise<Sample>;
}

export interface TurnLength {
  readonly seconds: number;
  readonly warmUpMs: number;
}

/** A figure that counts: the rate of one contestant over that of another, both of the same round. */
export interface Comparison {
  readonly of: string;
  readonly to: string;
  readonly atLeast: number;
  /** Which of the numbers of connections the goal is for. */
  readonly connections: readonly number[];
  /** The goal in docs/performance.md. */
  readonly goal: string;
}

/** The longest that a contestant may take, each a median over the rounds. */
export interface LatencyGoal {
  readonly of: string;
  readonly p50MsMax: number;
  readonly p99MsMax?: number;
  readonly connections: readonly number[];
  readonly goal: string;
}

/** One line of work that contestants do in turn. */
export interface Row {
  readonly id: string;
  readonly title: string;
  readonly connections: readonly number[];
  /** What p50 and p99 are of, when not the whole request. */
  readonly timed?: string;
  /** Fewer rounds than the run has, for rows about something that does not vary. */
  readonly roundsMax?: number;
  /** Body bytes by request, for a throughput beside the rate. */
  readonly bodyBytes: number;
  readonly turns: readonly Turn[];
  readonly comparisons: readonly Comparison[];
  /** What `connections` counts in this row's title, when not connections; `null`: nothing, the contestants say it. */
  readonly counts?: string | null;
  readonly latencies?: readonly LatencyGoal[];
  /** Highest resident memory that the goal allows. */
  readonly memoryMax?: { readonly of: string; readonly atMostBytes: number; readonly goal: string };
  /** Highest growth of resident memory in a turn that the goal allows. */
  readonly memoryGrowth?: { readonly of: string; readonly atMostBytes: number; readonly goal: string };
}
