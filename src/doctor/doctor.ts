import type { DoctorReport, FixRequest } from '../domain/administration.ts';
import { type AuditDraft, auditDetail, recordWith } from '../domain/audit-record.ts';
import { rfc3339 } from '../domain/clock.ts';
import { asGatewayError, type GatewayError, refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Caller } from '../domain/principal.ts';
import { coordinatorNodes, coordinatorState } from './coordinator-findings.ts';
import type { Diagnosis, Remedy } from './diagnosis.ts';
import type { DoctorDeps } from './doctor-deps.ts';
import { foreignChanges } from './foreign-changes.ts';
import { journalFindings, repeatedRefusals } from './journal-findings.ts';
import { deadlocks, heldLong, leftBehind, longQueues } from './lock-findings.ts';
import { nearlyFull, slowVolumes, startFindings, unknownOutcomes } from './volume-findings.ts';

interface Examination {
  readonly report: DoctorReport;
  readonly diagnoses: readonly Diagnosis[];
}

/** The lock doctor (R22): one snapshot of everything that can be stuck, what is wrong with it and why, and the fixes that are safe. */
export class Doctor {
  readonly #deps: DoctorDeps;
  /** Who asks while an examination runs gets the same one: it costs reads of journal and volumes. */
  #running: Promise<Examination> | null = null;

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
   * Rejects with `not_found` for a finding that is gone, has no fix, or needs force. Audited before the answer, also when it is refused;
   * a dry run decides nothing and leaves no record.
   */
  async fix(
    caller: Caller,
    { findingId, dryRun, force, reason }: FixRequest,
  ): Promise<{ readonly dryRun: boolean; readonly steps: readonly string[] }> {
    const { diagnoses } = await this.#examine();
    const found = diagnoses.find(({ finding }) => finding.id === findingId);
    const remedy = found?.remedy ?? (force && reason !== null ? (found?.forced?.(reason) ?? null) : null);
    if (remedy === null) {
      const error = refuse('not_found', whyNoFix(found), { needs_force: found?.forced != null });
      if (!dryRun) await this.#refused(caller, null, reason, error);
      throw error;
    }
    if (dryRun) return { dryRun, steps: remedy.steps };
    return { dryRun, steps: await this.#carryOut(caller, remedy, reason) };
  }

  async #carryOut(caller: Caller, remedy: Remedy, reason: string | null): Promise<readonly string[]> {
    let steps: readonly string[];
    try {
      steps = await remedy.carryOut(caller);
    } catch (thrown) {
      const error = asGatewayError(thrown);
      if (error.code !== 'journal_unavailable' && error.code !== 'outcome_unknown') await this.#refused(caller, remedy, reason, error);
      throw error;
    }
    await this.#deps.journal.commit([{ op: 'audit', record: this.#record(caller, remedy, reason, null) }]);
    return steps;
  }

  async #refused(caller: Caller, remedy: Remedy | null, reason: string | null, error: GatewayError): Promise<void> {
    await this.#deps.refusals.refused(this.#record(caller, remedy, reason, error));
  }

  #record(caller: Caller, remedy: Remedy | null, reason: string | null, error: GatewayError | null): AuditDraft {
    return recordWith({
      at: rfc3339(this.#deps.clock.wallMs()),
      action: 'doctor_fix',
      volume: remedy?.subject?.volume ?? null,
      path: remedy?.subject?.path ?? null,
      outcome: error === null ? 'committed' : 'rejected',
      code: error?.code ?? null,
      status: error === null ? null : this.#deps.statusOf(error.code),
      principal: caller.principal.name,
      clientId: caller.clientId,
      remoteAddress: caller.remoteAddress,
      requestId: caller.requestId,
      leaseRef: remedy?.leaseRef ?? null,
      ...(reason === null ? {} : { detail: auditDetail(reason) }),
    });
  }

  async #examine(): Promise<Examination> {
    const { clock, journal, locks: service, lanes, endLease, unsettled, refusalWindow } = this.#deps;
    const volumes = this.#deps.volumes();
    const conditions = [...this.#deps.conditions()];
    const waitFor = this.#deps.waitFor();
    const { locks } = await service.locks({ limit: LIMITS.doctorLocksMax, cursor: null });
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
      sessions: service.sessions(),
      locks,
      waitFor,
      coordinator,
      volumes: this.#deps.readiness(),
    };
    return { report, diagnoses };
  }
}

function whyNoFix(found: Diagnosis | undefined): string {
  if (found === undefined) return 'There is no such finding now.';
  if (found.forced !== null) return 'The client of this lease may be alive: this fix needs force, and a reason.';
  return 'This finding has no fix that is safe to carry out by itself; its evidence says what to do.';
}
