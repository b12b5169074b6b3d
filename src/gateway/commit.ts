/**
 * Step 6, the commit section: one at a time per resource. Carries I1 (the lease is checked again and pinned while the section
 * runs), I3 (nothing is visible before intent and bytes are durable) and I4 (the intent is the audit record, presumed committed).
 */
import type { StoredOutcome } from '../domain/audit-record.ts';
import { rfc3339 } from '../domain/clock.ts';
import { commitDeadlineMs } from '../domain/commit-deadline.ts';
import { asGatewayError, type GatewayError, refuse } from '../domain/errors.ts';
import { etagFound } from '../domain/file-facts.ts';
import type { Intent, Settled } from '../domain/intent.ts';
import type { JournalOp, StoredAnswer } from '../domain/journal.ts';
import type { Pin } from '../domain/lease.ts';
import type { Volume } from '../domain/volume.ts';
import type { WriteDeps } from './deps.ts';
import { ABORTED_UNSEEN, outcomeUnknown, recordInDoubt, refusedInDoubt, retagging, scopeOf, unknownAnswer } from './idempotency.ts';
import { judgedAgain } from './judge-token.ts';
import type { Operation } from './operation.ts';
import type { WriteRight } from './write-lease.ts';

/** What a verb has decided inside its section. */
export interface Section {
  readonly volume: Volume;
  readonly intents: readonly Intent[];
  /** Records of the same unit beside those of the intents: the old name of a MOVE. */
  readonly companions: readonly Intent['audit'][];
  /** Must be durable before the intent is: staged files and manifest of `several`. */
  readonly prepare?: () => Promise<void>;
  /** Must be durable before the apply; runs beside the journal. */
  readonly sync: () => Promise<void>;
  readonly apply: () => Promise<void>;
  /** Drops the staged files when the section ends without an apply. The records on the volume stay until the outcome is durable. */
  readonly discard: () => Promise<void>;
  /**
   * The same where the journal does not know whether it has the intent. True when recovery then has nothing to finish it with: the staged files
   * are gone for good. False where it needs none: a DELETE, a MOVE, a directory.
   */
  readonly discardForGood: () => Promise<boolean>;
  readonly answer: StoredAnswer;
}

/**
 * Enters the section of every resource of `right`, pins its lease, and carries out what `decide` plans. The section ends when the
 * names are durable; or it stays entered, in the hands of the settle loop, while the volume does not tell what happened.
 */
export async function commitSection(deps: WriteDeps, operation: Operation, right: WriteRight, decide: () => Promise<Section>): Promise<StoredAnswer> {
  const leaveMutex = await deps.mutex.enter(
    right.grants.map((g) => g.resource.key),
    operation.envelope.signal,
  );
  let leave = leaveMutex;
  let kept = false;
  try {
    await operation.reached('6.enter');
    leave = await pinAll(deps, operation, right, leaveMutex);
    const section = await decide();
    await operation.reached('6.checked');
    const done = await carryOut(deps, operation, right, section, leave);
    kept = done.kept;
    if (done.error !== null) throw done.error;
    await operation.reached('6.leave');
    return section.answer;
  } finally {
    if (!kept) leave();
  }
}

/** Pins each lease once per resource; gives back the function that unpins and leaves the mutex. */
async function pinAll(deps: WriteDeps, operation: Operation, right: WriteRight, leaveMutex: () => void): Promise<() => void> {
  const pins: Pin[] = [];
  for (const grant of right.grants) {
    try {
      pins.push(deps.leases.pin(grant.resource, grant.token));
    } catch (error) {
      for (const pin of pins) pin.leave();
      throw grant.presented ? await judgedAgain(deps, operation, grant, error) : error;
    }
  }
  return () => {
    for (const pin of pins) pin.leave();
    leaveMutex();
  };
}

interface Ending {
  readonly error: GatewayError | null;
  /** The settle loop holds the section now. */
  readonly kept: boolean;
}

async function carryOut(deps: WriteDeps, operation: Operation, right: WriteRight, section: Section, leave: () => void): Promise<Ending> {
  const durable = await makeDurable(deps, operation, right, section);
  if (durable.error !== null) {
    if (durable.intended === 'in_doubt') return inDoubt(deps, operation, section, durable.error);
    await section.discard();
    if (!durable.intended) {
      section.volume.tidy(section.intents);
      return { error: durable.error, kept: false };
    }
    // The journal has the intent but the bytes are not safe: nothing was applied, and the record must say so.
    return abort(deps, operation, section, durable.error, leave);
  }
  await operation.reached('6.before_apply');
  return applyIntent(deps, operation, section, leave);
}

/** Staged bytes and intent side by side: two waits at once, so that a write costs two sync latencies in sequence, not three. */
async function makeDurable(
  deps: WriteDeps,
  operation: Operation,
  right: WriteRight,
  section: Section,
): Promise<{ readonly error: GatewayError | null; readonly intended: boolean | 'in_doubt' }> {
  try {
    await section.prepare?.();
  } catch (error) {
    return { error: asGatewayError(error), intended: false };
  }
  await operation.reached('6.intent');
  const [synced, written] = await Promise.allSettled([section.sync(), deps.journal.commit(unitOf(deps, operation, right, section))]);
  const intended = written.status === 'fulfilled';
  operation.intended = intended;
  if (written.status === 'rejected') {
    const error = asGatewayError(written.reason);
    return { error, intended: error.code === 'outcome_unknown' ? 'in_doubt' : intended };
  }
  if (synced.status === 'rejected') return { error: asGatewayError(synced.reason), intended };
  await operation.reached('6.durable');
  return { error: null, intended };
}

function unitOf(deps: WriteDeps, operation: Operation, right: WriteRight, section: Section): JournalOp[] {
  const ops: JournalOp[] = [...right.ops, ...deps.mtimes.raise(section.volume.name, section.intents)];
  for (const intent of section.intents) ops.push({ op: 'intent', intent });
  for (const record of section.companions) ops.push({ op: 'audit', record });
  const scope = scopeOf(operation.envelope);
  const sent = operation.envelope.idempotency;
  if (scope !== null && sent !== null) {
    const row = { fingerprint: sent.fingerprint, operationId: operation.id, answer: section.answer };
    ops.push({ op: 'idempotency_put', scope, row, atMs: deps.clock.wallMs() });
  }
  return ops;
}

/**
 * The next start may find the intent, and would finish it. Where that takes a staged file, the file goes, and then nothing was changed and nothing
 * will be. Otherwise nobody can say before that start; the section stays entered, and what lies on the volume stays for recovery.
 */
async function inDoubt(deps: WriteDeps, operation: Operation, section: Section, cause: GatewayError): Promise<Ending> {
  if (await section.discardForGood()) {
    deps.journal.settled(operation.id);
    return { error: refusedInDoubt(cause), kept: false };
  }
  operation.intended = true;
  deps.settleLoop.leaveToNextStart(section);
  return { error: recordInDoubt(operation.id, cause), kept: true };
}

async function applyIntent(deps: WriteDeps, operation: Operation, section: Section, leave: () => void): Promise<Ending> {
  const applying = section.apply();
  const ended = await withDeadline(deps, applying, commitDeadlineMs(section.intents.length));
  if (ended.how === 'done') {
    await operation.reached('6.synced');
    finish(deps, section, operation, { applied: true });
    return { error: null, kept: false };
  }
  if (ended.how === 'failed' && ended.error.code !== 'outcome_unknown') {
    await section.discard();
    return abort(deps, operation, section, ended.error, leave);
  }
  const cause = ended.how === 'failed' ? ended.error : undefined;
  keepEntered(deps, operation, section, leave, { running: applying, known: null });
  return unknown(deps, operation, section, cause);
}

/** A definite failure: the `aborted` record is durable before the answer. Without it a restart could finish the write, so it is unknown. */
async function abort(deps: WriteDeps, operation: Operation, section: Section, error: GatewayError, leave: () => void): Promise<Ending> {
  try {
    await recordOutcome(deps, section, operation, { outcome: 'aborted', error });
  } catch (cause) {
    keepEntered(deps, operation, section, leave, { running: Promise.resolve(), known: error });
    return { error: outcomeUnknown(operation.id, cause), kept: true };
  }
  finish(deps, section, operation, { applied: false });
  return { error, kept: false };
}

/** The settle loop holds the section until the last word is durable. */
function keepEntered(
  deps: WriteDeps,
  operation: Operation,
  section: Section,
  leave: () => void,
  state: { readonly running: Promise<void>; readonly known: GatewayError | null },
): void {
  deps.settleLoop.adopt({
    volume: section.volume,
    intents: section.intents,
    // A call that hangs may still end; only then is it safe to look.
    running: state.running,
    known: state.known === null ? null : 'aborted',
    record: (outcome, found) => recordOutcome(deps, section, operation, { outcome, error: state.known, found }),
    left: () => {
      finish(deps, section, operation, { applied: false });
      leave();
    },
  });
}

/** The `unknown` record goes before the answer when the journal takes it; the settle loop writes the last word in any case. */
async function unknown(deps: WriteDeps, operation: Operation, section: Section, cause: GatewayError | undefined): Promise<Ending> {
  const error = outcomeUnknown(operation.id, cause);
  try {
    await recordOutcome(deps, section, operation, { outcome: 'unknown', error });
  } catch (journal) {
    return { error: outcomeUnknown(operation.id, new AggregateError([cause, journal])), kept: true };
  }
  return { error, kept: true };
}

type Applied = { readonly how: 'done' } | { readonly how: 'failed'; readonly error: GatewayError } | { readonly how: 'late' };

/** A section past its deadline is answered as unknown; what still runs is left to the settle loop. */
function withDeadline(deps: WriteDeps, applying: Promise<void>, deadlineMs: number): Promise<Applied> {
  return new Promise((resolve) => {
    const timer = deps.clock.after(deadlineMs, () => resolve({ how: 'late' }));
    applying.then(
      () => {
        timer.cancel();
        resolve({ how: 'done' });
      },
      (error: unknown) => {
        timer.cancel();
        resolve({ how: 'failed', error: asGatewayError(error) });
      },
    );
  });
}

interface LastWord {
  readonly outcome: StoredOutcome;
  readonly error: GatewayError | null;
  /** What was seen at the target of each intent. */
  readonly found?: readonly Settled[];
}

/** The last word on an operation, durable before its answer. One record for each that the unit of the intent had. */
async function recordOutcome(deps: WriteDeps, section: Section, operation: Operation, { outcome, error, found = [] }: LastWord): Promise<void> {
  const code = error?.code ?? (outcome === 'aborted' ? ABORTED_UNSEEN : null);
  const records = [...section.intents.map((intent) => intent.audit), ...section.companions];
  await deps.journal.commit(
    records.map((intended, index) => {
      const etagAfter = etagFound(intended.etagAfter, found[index]?.after ?? null);
      return {
        op: 'outcome',
        operationId: operation.id,
        outcome,
        answer: outcome === 'unknown' ? unknownAnswer() : null,
        ...retagging(intended.etagAfter, etagAfter),
        record: {
          ...intended,
          at: rfc3339(deps.clock.wallMs()),
          outcome,
          code,
          status: code === null ? intended.status : deps.statusOf(code),
          etagAfter: outcome === 'aborted' ? null : etagAfter,
        },
      };
    }),
  );
}

function finish(deps: WriteDeps, section: Section, operation: Operation, { applied }: { readonly applied: boolean }): void {
  deps.journal.settled(operation.id);
  for (const intent of section.intents) if (intent.plan.kind === 'append') section.volume.limitVisible(intent.resource, null);
  // The rename of a replacing write took the staged name away, so looking for it would only be one failing call per write.
  if (!applied || section.intents.some(({ plan }) => plan.kind !== 'replace')) section.volume.tidy(section.intents);
}

/** The parent that a write was admitted under must be the parent that it commits under (trap F24). */
export function assertSameParent(
  admitted: { readonly dev: bigint; readonly ino: bigint } | null,
  now: { readonly dev: bigint; readonly ino: bigint } | null,
): void {
  if (admitted === null) return;
  if (now?.dev === admitted.dev && now.ino === admitted.ino) return;
  throw refuse('not_found', 'The directory of this file was moved, replaced or removed while the body was sent.');
}
