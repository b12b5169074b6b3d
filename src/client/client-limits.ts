/** Every bound of the client that is not an option, in one place. Durations in ms. */
export const CLIENT_LIMITS = {
  /** How long one request may go without an answer, beside what it asked the gateway to wait. */
  requestMsMax: 30_000,
  /** An administrator's order may have to wait for a volume. */
  orderMsMax: 120_000,
  /** With the delays below about six seconds: a restart of the gateway is outlasted. */
  attemptsMax: 8,
  retryDelayMs: 100,
  retryDelayMsMax: 5_000,
  /** A gateway that asks for more patience than this is not waited for. */
  retryAfterMsMax: 60_000,

  sessionTtlMs: 300_000,
  /** Sessions that are made anew within one acquisition. */
  sessionsPerAcquireMax: 3,
  /** Heartbeats in the time that the shortest lease lives for without one. */
  heartbeatsPerTtl: 3,
  heartbeatMsMin: 200,
  heartbeatRetryMs: 100,
  /** The part of its time to live by which a lease counts as over too early. */
  marginPart: 0.1,
  marginMsMin: 100,
  marginMsMax: 3_000,
  /** How long a loss waits for the gateway to say why. */
  lossReasonMs: 1_000,

  /** The first request of a wait is short: whoever is cut off before its answer has no place in line yet. */
  firstWaitMs: 250,
  pollWaitMs: 30_000,
  cleanUpMs: 5_000,
  leftoversMax: 1_000,

  /** A server that knows nothing of 100-continue is not waited for longer. */
  continueMs: 10_000,
  answerBytesMax: 16_777_216,

  /** Three comments of the gateway missed: the stream is dead. */
  streamQuietMs: 45_000,
  streamLineMax: 4_194_304,
  inheritedLookMsMax: 10_000,
  /** A lease that is held for longer is followed by a stream. */
  followAfterMs: 250,
  /** Where all places for streams are taken. */
  followAgainMsMax: 60_000,
} as const;
