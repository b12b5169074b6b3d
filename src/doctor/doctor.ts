import type { DoctorReport, FixRequest } from '../domain/administration.ts';
import { type AuditDraft, fixDetail, recordWith } from '../domain/audit-record.ts';
import { rfc3339 } from '../domain/clock.ts';
import { asGatewayError, GatewayError, refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Caller } from '../domain/principal.ts';
import { coordinatorNodes, coordinatorState, isOutOfSight } from './coordinator-findings.ts';
import { aboutOf, type Diagnosis, type Remedy } from './diagnosis.ts';
import type { DoctorDeps } from './doctor-deps.ts';
import { foreignChanges } from './foreign-changes.ts';
import { journalFindings, repeatedRefusals } from './journal-findings.ts';
import { deadlocks, heldLong, leftBehind, longQueues } from './lock-findings.ts';
import { nearlyFull, slowVolumes, startFindings, unknownOutcomes } from './volume-findings.ts';

interface Examination {
  readonly report: DoctorReport;
  readonly diagnoses: readonly Diagnosis[];
}

/** A fix that an administrator asked for. `found`, `remedy`: as far as there are such now. */
interface Order {
  readonly caller: Caller;
  readonly findingId: string;
  readonly reason: string | null;
  readonly found: Diagnosis | undefined;
  readonly remedy: Remedy | null;
}

/** The lock doctor (R22): one snapshot of everything that can be stuck, what is wrong with it and why, and the fixes that are safe. */
export class Doctor {
  readonly #deps: DoctorDeps;
  /** Who asks while an examination runs gets the same one: it costs reads of journal and volumes. */
  #running: Promise<Examination> | null = null;
  /** Fixes that are in effect while the journal does not have them, by finding, which has gone: whoever asks again asks for that one. */
  readonly #inDoubt = new Map<string, Pick<Order, 'found' | 'remedy'>>();

  constructor(deps: DoctorDeps) {
    this.#deps = deps;
  }

  async report(): Promise<DoctorReport> {
    this.#running ??= this.#examine().finally(() => {
      this.#running = null;
    });
    return (await this.#running).report;
  }

  /**
   * Carries out the fix of a finding that stands now, or tells its steps; with `force` also one that harms a client that may be alive.
   * Rejects with `not_found` for a finding that is gone, has no fix, or needs force, `coordinator_suspended` where that cannot be told,
   * `invalid_request` for force without a reason. Audited before the answer, also when it is refused; a dry run decides nothing and leaves
   * no record.
   */
  async fix(
    caller: Caller,
    { findingId, dryRun, force, reason }: FixRequest,
  ): Promise<{ readonly dryRun: boolean; readonly steps: readonly string[] }> {
    const { diagnoses } = await this.#examine();
    const standing = diagnoses.find(({ finding }) => finding.id === findingId);
    const inDoubt = standing === undefined ? this.#inDoubt.get(findingId) : undefined;
    const found = standing ?? inDoubt?.found;
    const remedy = inDoubt?.remedy ?? found?.remedy ?? (force && reason !== null ? (found?.forced?.(reason) ?? null) : null);
    const order = { caller, findingId, reason, found, remedy };
    const unexplained = force && reason === null;
    if (remedy === null || unexplained) {
      const error = unexplained ? withoutReason() : this.#noFix(findingId, found);
      if (!dryRun) await this.#refused(order, error);
      throw error;
    }
    if (dryRun) return { dryRun, steps: remedy.steps };
    return { dryRun, steps: await this.#carryOut(order, remedy) };
  }

  async #carryOut(order: Order, remedy: Remedy): Promise<readonly string[]> {
    let steps: readonly string[];
    try {
      steps = await remedy.carryOut(order.caller);
    } catch (thrown) {
      const error = asGatewayError(thrown);
      if (error.code === 'outcome_unknown') this.#remember(order);
      if (error.code !== 'journal_unavailable' && error.code !== 'outcome_unknown') await this.#refused(order, error);
      throw error;
    }
    await this.#deps.journal.commit([{ op: 'audit', record: this.#record(order, null) }]);
    this.#inDoubt.delete(order.findingId);
    return steps;
  }

  #noFix(findingId: string, found: Diagnosis | undefined): GatewayError {
    if (found === undefined && isOutOfSight(findingId, this.#deps.coordinator())) return notSeen();
    return refuse('not_found', whyNoFix(found), { needs_force: found?.forced != null });
  }

  #remember({ findingId, found, remedy }: Order): void {
    this.#inDoubt.set(findingId, { found, remedy });
    for (const oldest of this.#inDoubt.keys()) {
      if (this.#inDoubt.size <= LIMITS.doctorFindingsMax) return;
      this.#inDoubt.delete(oldest);
    }
  }

  async #refused(order: Order, error: GatewayError): Promise<void> {
    await this.#deps.refusals.refused(this.#record(order, error));
  }

  /** Names the finding, and what that is about, whatever came of the order. */
  #record({ caller, findingId, reason, found, remedy }: Order, error: GatewayError | null): AuditDraft {
    const about = found === undefined ? null : aboutOf(found.finding);
    const subject = remedy?.subject ?? about?.subject ?? null;
    return recordWith({
      at: rfc3339(this.#deps.clock.wallMs()),
      action: 'doctor_fix',
      volume: subject?.volume ?? null,
      path: subject?.path ?? null,
      outcome: error === null ? 'committed' : 'rejected',
      code: error?.code ?? null,
      status: error === null ? null : this.#deps.statusOf(error.code),
      principal: caller.principal.name,
      clientId: caller.clientId,
      remoteAddress: caller.remoteAddress,
      requestId: caller.requestId,
      leaseRef: remedy?.leaseRef ?? about?.leaseRef ?? null,
      detail: fixDetail(findingId, reason),
    });
  }

  async #examine(): Promise<Examination> {
    const { clock, journal, locks: service, lanes, endLease, unsettled, refusalWindow } = this.#deps;
    const volumes = this.#deps.volumes();
    const conditions = [...this.#deps.conditions()];
    const waitFor = this.#deps.waitFor();
    const { locks } = await service.locks({ limit: LIMITS.doctorLocksMax, cursor: null });
    const { sessions } = await service.sessionPage({ limit: LIMITS.doctorSessionsMax, cursor: null });
    const { found: slow, answering } = await slowVolumes({ clock, volumes, lanes: lanes() });
    const coordinator = this.#deps.coordinator();
    const diagnoses = [
      ...coordinatorState(coordinator),
      ...(await coordinatorNodes(this.#deps)),
      ...startFindings(volumes),
      ...slow,
      ...nearlyFull(volumes),
      ...unknownOutcomes(unsettled),
      ...(await journalFindings(journal, clock)),
      ...leftBehind(conditions, endLease),
      ...deadlocks(waitFor, conditions),
      ...heldLong(conditions, endLease),
      ...longQueues(locks),
      ...(await foreignChanges(journal, answering)),
      ...repeatedRefusals(refusalWindow.repeated()),
    ];
    const findings = diagnoses.map(({ finding }) => finding);
    const report: DoctorReport = {
      at: rfc3339(clock.wallMs()),
      healthy: findings.every(({ severity }) => severity === 'info'),
      findings,
      sessions,
      locks,
      waitFor,
      coordinator,
      volumes: this.#deps.readiness(),
    };
    return { report, diagnoses };
  }
}

function withoutReason(): GatewayError {
  return refuse('invalid_request', 'Who forces a fix says why.', { field: 'reason' });
}

function notSeen(): GatewayError {
  return new GatewayError('coordinator_suspended', {
    detail: 'There is no contact with the coordinator at the moment, so whether there is such a finding is not known.',
    retryAfterMs: 1_000,
  });
}

function whyNoFix(found: Diagnosis | undefined): string {
  if (found === undefined) return 'There is no such finding now.';
  if (found.forced !== null) return 'The client of this lease may be alive: this fix needs force, and a reason.';
  return 'This finding has no fix that is safe to carry out by itself; its evidence says what to do.';
}
