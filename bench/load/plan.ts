import type { CyclePlan, HandOverPlan, HeartbeatPlan } from './cycle-plan.ts';

/** What one connection sends again and again. */
export interface RequestPlan {
  /** The whole request head as it goes over the wire, with the empty line. */
  readonly head: string;
  readonly bodyBytes: number;
  /** The head carries `Expect: 100-continue`: the body is sent only when the server asks for it. */
  readonly expectsContinue: boolean;
}

/** Work for the load driver: one connection per request plan, the next request after the answer to the last. */
export interface LoadPlan {
  readonly port: number;
  readonly requests: readonly RequestPlan[];
  /** Any other answer makes the whole load fail: a figure made of errors is no figure. */
  readonly statuses: readonly number[];
  readonly amount: Amount;
}

/** For how long, or how often on each connection. The warm-up is not part of the figures. */
export type Amount = { readonly warmUpMs: number; readonly measureMs: number } | { readonly requestsPerConnection: number };

export interface LoadResult {
  /** Answers inside the measured time, and the rate and latencies they give. */
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** All answers, warm-up included: what CPU time and disk flushes of the whole load are divided by. */
  readonly requestsAll: number;
  readonly bodyBytesSent: number;
  /** Share of one CPU that the driver itself used: near 1 the driver was the limit and not the server. */
  readonly driverCpuShare: number;
}

export type DriverPlan = LoadPlan | CyclePlan | HandOverPlan | HeartbeatPlan;

export type DriverAnswer = { readonly result: LoadResult } | { readonly problem: string };
