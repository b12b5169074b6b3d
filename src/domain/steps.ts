/**
 * The numbered steps of the write protocol, as a port. In production nobody listens; the fault tests stop (SIGSTOP) or
 * end (SIGKILL) the process at each of them and check the invariants afterwards.
 */
export const STEPS = [
  '1.limits',
  '2.name',
  '3.admit',
  '4.stage',
  '4.staged',
  '5.lease',
  '6.enter',
  '6.checked',
  '6.intent',
  '6.durable',
  '6.before_apply',
  '6.applied',
  '6.synced',
  '6.leave',
  '7.answer',
] as const;
export type Step = (typeof STEPS)[number];

export interface Steps {
  /** Called when `step` of `operationId` is reached; the protocol goes on when it resolves. `undefined`: go on at once. */
  reached(step: Step, operationId: string): Promise<void> | undefined;
}

export const noSteps: Steps = { reached: () => undefined };
