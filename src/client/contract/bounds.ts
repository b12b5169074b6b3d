// Made from the schemas of the gateway: npx vitest run test/unit/client/contract.test.ts -u

/** Durations in ms. */
export const BOUNDS = {
  leaseTtlMsDefault: 30_000,
  leaseWaitMsMax: 60_000,
  watchCommentMs: 15_000,
} as const;
