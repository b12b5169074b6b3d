/** Every bound of the product that is not a setting, in one place. Durations in ms, sizes in bytes. */

export const LIMITS = {
  pathBytesMax: 4096,
  segmentBytesMax: 255,
  volumeNameMax: 63,

  leaseTtlMsDefault: 30_000,
  leaseTtlMsMin: 1_000,
  leaseTtlMsMax: 3_600_000,
  leaseWaitMsMax: 60_000,
  leaseResourcesMax: 100,
  leaseEndedKeptMs: 3_600_000,
  leaseMetadataBytesMax: 4_096,
  contendersPerResourceMax: 1_000,
  leasesPerSessionMax: 10_000,
  sessionsPerPrincipalMax: 100_000,
  heartbeatBatchMax: 1_000,
  clientIdBytesMax: 256,

  writeWaitMsDefault: 5_000,
  writeWaitMsMax: 60_000,

  headerBytesMax: 32_768,
  uriBytesMax: 16_384,
  jsonBodyBytesMax: 1_048_576,
  headersTimeoutMs: 10_000,
  keepAliveTimeoutMs: 65_000,
  refusedBodyDrainBytesMax: 33_554_432,
  refusedBodyDrainMsMax: 2_000,
  multipartFilesMax: 1_000,
  multipartFieldsMax: 0,

  auditPageDefault: 100,
  auditPageMax: 1_000,
  listPageDefault: 1_000,
  listPageMax: 10_000,
  listEntriesMax: 1_000_000,

  idempotencyKeyBytesMax: 255,
  idempotencyKeptMs: 86_400_000,
  idempotencyRowsMax: 1_000_000,
  operationsKeptMs: 604_800_000,

  journalQueueMax: 20_000,
  journalGroupMax: 1_000,
  markCacheMax: 100_000,

  settleRetryMs: 2_000,
  commitDeadlineMs: 10_000,
  volumeCallDeadlineMs: 4_000,
  volumeInFlightDefault: 8,
  volumeQueueMax: 1_024,
  stagedBytesPerPrincipalDefault: 1_099_511_627_776,
  threadPoolSize: 32,
  copyChunkBytes: 1_048_576,

  tokenBlock: 1n << 20n,
  ownerHeartbeatMs: 1_000,
  refusalWindowMs: 1_000,
} as const;
