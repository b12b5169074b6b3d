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
  /** Of what a lease says it is for, as many characters as are shown with the lock. */
  leaseReasonShownMax: 256,
  contendersPerResourceMax: 1_000,
  /** Contenders of other recipes that a refusal names. */
  foreignNamedMax: 10,
  leasesPerSessionMax: 10_000,
  sessionsPerPrincipalMax: 250_000,
  heartbeatBatchMax: 1_000,
  clientIdBytesMax: 256,
  /** Only where a volume allows leases without an end of their own: 10 years. */
  leaseTtlMsUnbounded: 315_360_000_000,
  holdsPerLeaseMax: 1_000,
  holdIdBytesMax: 256,
  lockDelayMsMax: 3_600_000,
  breakGraceMsMax: 3_600_000,
  breakReasonBytesMax: 1_024,
  /** How many leases one break may name. */
  breakLeasesMax: 1_000,
  brokenLeaseWritesMax: 1_000,
  /** Of those, how many the record of the break lists. */
  recordedWritesMax: 100,
  /** How long a break waits for a commit section before it answers that it is pending. */
  breakAnswerMs: 1_000,
  inheritanceStepsMax: 10_000,
  deadlockConfirmMs: 50,
  deadlockVisitsMax: 10_000,
  waitForLinksMax: 10_000,
  endedLeasesMax: 100_000,
  endedSessionsMax: 200_000,
  lostPerSessionMax: 1_000,
  endsPerUnitMax: 200,
  /** After which the end of a lease that the journal refused is tried again, when nobody asks. */
  endRetryMs: 1_000,
  /** How long a gateway that stops tries them once more, and how many of those left its log names. */
  endsAtStopMs: 2_000,
  endsNamedMax: 100,
  /** After which grants to waiters that the journal refused are tried again, and how many of them at once. */
  grantRetryMs: 1_000,
  grantRetriesMax: 1_000,
  /** How long a look at locks, a heartbeat, or whoever names a session that is over waits for the journal to take an end that it found. */
  endsAwaitedMs: 250,
  lockEventsMax: 20_000,
  lockEventsBufferMax: 1_000,
  lockPageMax: 1_000,
  /** The gauges of one scrape share one walk over all locks. */
  lockFiguresKeptMs: 200,
  lockExpiryCheckMsMax: 60_000,
  /** Sessions that come back after a restart are taken in at this rate, so that a storm of them starves nobody. */
  reconnectsPerSecondMax: 2_000,
  reconnectBurstMax: 1_000,
  reconnectJitterMs: 1_000,

  writeWaitMsDefault: 5_000,
  writeWaitMsMax: 60_000,

  headerBytesMax: 32_768,
  uriBytesMax: 16_384,
  jsonBodyBytesMax: 1_048_576,
  headersTimeoutMs: 10_000,
  pipelinedMax: 64,
  pressureSampleMs: 1_000,
  closeConnectionsMs: 1_000,
  keepAliveTimeoutMs: 65_000,
  refusedBodyDrainBytesMax: 33_554_432,
  refusedBodyDrainMsMax: 2_000,
  multipartFilesMax: 1_000,
  /** How long a multipart parser may say nothing after the last byte before the body counts as malformed. */
  multipartSettleMs: 2_000,
  /** A refused body up to this declared size is read and dropped, and the connection stays open. */
  refusedBodyKeepBytesMax: 65_536,
  connectionCheckMs: 5_000,
  requestIdBytesMax: 128,
  leaseIdBytesMax: 256,
  signedTokenBytesMax: 1_024,
  entityTagsMax: 100,
  byteRangesMax: 16,
  reasonBytesMax: 1_024,
  watchCommentMs: 15_000,
  watchesMax: 10_000,
  eventLoopDelayMsMax: 2_000,

  /** A heartbeat of `heartbeatBatchMax` sessions fits. */
  grpcMessageBytesMax: 524_288,
  /** Calls that are open at once, most of them waiting for a lock. */
  grpcCallsMax: 20_000,
  grpcStreamsPerConnectionMax: 10_000,
  /** A client that does not answer pings is gone: its waiting calls leave the line after both times. */
  grpcPingEveryMs: 15_000,
  grpcPingAnswerMs: 10_000,
  grpcIdleConnectionMs: 600_000,
  grpcHealthEveryMs: 1_000,
  rateLimitPrincipalsMax: 100_000,

  auditPageDefault: 100,
  auditPageMax: 1_000,
  listPageDefault: 1_000,
  listPageMax: 10_000,
  listEntriesMax: 1_000_000,

  idempotencyKeyBytesMax: 255,
  /** Of a field or query with such a key: between quotes each of its characters may stand escaped. */
  idempotencyFieldBytesMax: 512,
  idempotencyKeptMs: 86_400_000,
  idempotencyRowsMax: 1_000_000,
  operationsKeptMs: 604_800_000,

  journalQueueMax: 20_000,
  journalGroupMax: 1_000,
  markCacheMax: 100_000,
  digestCacheMax: 100_000,
  /** Look-ups that may wait for the reader thread. */
  journalReadsMax: 20_000,
  /** How long SQLite itself waits for a lock (B26): the thread answers BUSY after that. */
  journalBusyMs: 100,
  journalRetryAfterMs: 1_000,
  /** What is left of the WAL file after a checkpoint (B28). */
  journalSizeLimitBytes: 67_108_864,
  journalCheckpointEveryMs: 15_000,
  journalMaintenanceEveryMs: 60_000,
  auditHeadToldEveryMs: 60_000,
  journalMaintenanceRowsMax: 1_000,
  journalIntentsKeptMs: 86_400_000,
  /** How many records one short read transaction of an audit query may look at. */
  auditWindowMax: 65_536,
  /** Up to this many matches of an indexed filter are fetched at once; more are found by walking the log. */
  auditRareMatchesMax: 5_000,
  auditKeepDaysMin: 7,
  refusalKeysMax: 10_000,
  refusalEarlyWindowMs: 60_000,
  ownerKillWaitMs: 2_000,
  ownerLockWaitMs: 3_000,
  ownerJudgementsMax: 10,

  settleRetryMs: 2_000,
  commitDeadlineMs: 10_000,
  /** Each further file of one commit (an upload has at most `multipartFilesMax`) may take this long in addition: one sync of a busy disk. */
  commitDeadlinePerFileMs: 20,
  /** Staged files of one upload that are synced at the same time: less than the lane takes, so that others get their turn. */
  uploadSyncsMax: 4,
  volumeCallDeadlineMs: 4_000,
  /** A local disk under load may take longer to change something, or to sync it, than a server that is well. */
  localChangeDeadlineMs: 10_000,
  volumeInFlightDefault: 8,
  volumeQueueMax: 1_024,
  /** Times that a file is opened for one answer: each stale handle is of a file that was replaced in that very moment, or of an export that is gone. */
  staleOpensMax: 4,
  /** Names in the own directory that could not be removed while the volume hung, and are tried again. */
  litterMax: 10_000,
  /** How long a hung volume is left alone before one call tries it again. */
  volumeCanaryMs: 2_000,
  /** While a call of a local volume is under way for longer, looks are not made on the main thread. */
  volumeLateMs: 100,
  /** How often a local volume in use is touched, to see that its disk answers; and how old the last answer may be for looks on the main thread. */
  volumeTouchEveryMs: 500,
  volumeTouchAgeMsMax: 1_000,
  stagedBytesPerPrincipalDefault: 1_099_511_627_776,
  versionStampTriesMax: 8,
  /** A large upload is synced every so often, so that the sync in its commit section is short. */
  stagedSyncEveryBytes: 67_108_864,
  /** Versions of our own commits that are remembered per volume, to tell them from writes behind our back. */
  ownVersionsMax: 100_000,
  /** Read again when a volume opens: the commits of the two seconds before it, in which a tag is only strong if the version is known to be ours. */
  newestIntentsMax: 10_000,
  threadPoolSize: 32,
  /** Extended attributes of one file that are carried over; on a network mount each is two requests, and all must fit into one deadline. */
  attributesCarriedMax: 256,
  copyChunkBytes: 1_048_576,
  readChunkBytes: 262_144,
  /** Names looked at to tell whether only leftovers of an NFS client keep a directory from being removed. */
  nfsLeftoversMax: 1_024,

  /** A manifest of `multipartFilesMax` files with the longest paths fits. */
  volumeRecordBytesMax: 16_777_216,
  /** Operations on several files that are being settled; what was found out about each is shared by its intents. */
  rollsKnownMax: 8,
  /** Names of settled operations that wait to be unlinked; what is beyond goes at the next start. */
  tidyNamesMax: 200_000,
  tidyOperationsMax: 2,
  tidyNamesPerTurn: 16,
  tidyRetryMsMin: 1_000,
  tidyRetryMsMax: 60_000,
  incarnationEntriesMax: 1_000_000,
  controlEntriesMax: 10_000,
  /** What a start's self-test makes in a directory of its own is a handful. */
  probeEntriesMax: 64,
  clearBatchMax: 1_000,
  /** How often a directory that is still being filled by its old process is emptied before the volume stays closed. */
  clearRoundsMax: 2_000,
  oldProcessEndMsMax: 10_000,
  oldProcessPollMs: 200,
  volumeRetryMsMin: 1_000,
  volumeRetryMsMax: 30_000,
  /** A stop of the gateway waits for the start of a volume for no longer: one that hangs does not keep the process. */
  volumeStartEndMsMax: 2_000,
  /** How often the parents of a file are made again because another write took back an empty one of them. */
  parentsTriesMax: 5,
  /** Directories above a volume's root that its start looks at. A path of the longest kind has no more. */
  directoriesAboveMax: 2_048,
  /** Directories of a volume that were looked at and are not the root of another one, remembered. */
  clearDirectoriesMax: 100_000,
  /** Between two looks at whether a volume's directory is still at its path, and can be written. */
  volumeLookEveryMs: 500,
  /** A write waits for another look when the last one is older: for no longer is anything written to a directory that was taken away. */
  volumeLookAgeMsMax: 1_000,
  /** Between two looks at what is left on a volume. */
  volumeSpaceEveryMs: 10_000,
  /** Less free than this share, of bytes or inodes, is a finding of the doctor. */
  volumeFreeShareMin: 0.05,

  tokenBlock: 1n << 20n,
  stampRefreshMs: 1_000,
  ownerHeartbeatMs: 1_000,
  refusalWindowMs: 1_000,

  /** After an answer that says nothing, before the ensemble is asked again. */
  zookeeperRetryMs: 100,
  /** Before a node is read again whose data no gateway wrote. */
  zookeeperUnreadableRetryMs: 1_000,
  /** Of the session: a server that has answered nothing for about so long has its connection cut, so that another one proves the session in time. */
  zookeeperSilentShare: 1 / 6,
  zookeeperSilentMsMin: 1_500,
  /** That share of the session, between these: so long an attempt at a connection to the ensemble may take before another one is made. */
  zookeeperAttemptMsMin: 2_000,
  zookeeperAttemptMsMax: 10_000,
  /** A start whose coordinator has not answered for so long listens while it waits. */
  coordinatorAwaitedMs: 2_000,
  /** How often a write that waits for the coordinator looks whether there is contact again. */
  contactPollMs: 100,
  /** How often a child is made again whose parent is gone again. */
  zookeeperCreatesMax: 5,
  /** Resource nodes that are remembered to be there; one more than this is made again in vain. */
  zookeeperKnownNodesMax: 100_000,
  /** How many version-checked changes of one node may be overtaken by somebody else's. */
  zookeeperSetsMax: 20,

  doctorLocksMax: 1_000,
  doctorSessionsMax: 1_000,
  /** Findings of one kind; the newest or first of them are enough to act on. */
  doctorFindingsMax: 100,
  /** Newest commits of each verb, and files of them, that are compared with what is on the volume. */
  doctorCommitsMax: 200,
  doctorFilesMax: 300,
  doctorChainRecordsMax: 5_000,
  doctorCheckMsMax: 5_000,
  /** A cycle of waits that is younger is about to be broken by the lock service itself. */
  standingDeadlockMs: 1_000,
  volumeSlowMs: 1_000,
  /** A network client that may answer from older attributes is warned about: it sees late what others change. */
  attributeCacheMsMax: 60_000,
  heldLongMs: 300_000,
  queueLong: 100,
  refusalsRepeatedMin: 10,
  refusalsRepeatedWindowMs: 300_000,
  refusalsRepeatedKeysMax: 10_000,
} as const;
