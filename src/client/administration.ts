import { checkOptions, someText, text } from './call-checks.ts';
import { CLIENT_LIMITS } from './client-limits.ts';
import type { Cancellable } from './client-options.ts';
import type { DoctorReport, Fence, FixReport, RebaseReport, VolumeReadiness } from './contract/answers.ts';
import { CANCELLABLE, FIX_OPTIONS, ORDER_OPTIONS } from './option-checks.ts';
import { resourceUrlPath } from './resource-path.ts';
import type { Transport } from './transport.ts';

/** Of an order that goes into the audit log. */
export interface OrderOptions extends Cancellable {
  /** Why; 1 to 1,024 bytes. */
  readonly reason: string;
}

export interface FixOptions extends Cancellable {
  /** Only tell the steps; default no. */
  readonly dryRun?: boolean;
  /** Also where the finding says `needs_force`: its client may be alive, and is fenced first. Goes with a `reason`. Default no. */
  readonly force?: boolean;
  /** Why; 1 to 1,024 bytes. Goes into the audit log. */
  readonly reason?: string;
}

/**
 * What administrators ask and order. Questions are repeated when the gateway was not reached; orders are not, because their outcome is then
 * unknown. Every method rejects with `forbidden` for anybody else, `gateway_unreachable`, or the signal's reason.
 */
export class Administration {
  readonly #transport: Transport;

  /** Made by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * One snapshot of sessions, locks, coordinator and volumes, and what is wrong with them. Rejects with `forbidden`.
   *
   * @example
   * const { findings } = await client.administration.doctor();
   * for (const { code, severity, resource } of findings) console.log(severity, code, resource);
   */
  async doctor(options: Cancellable = {}): Promise<DoctorReport> {
    checkOptions(options, CANCELLABLE);
    const { signal } = options;
    return this.#transport.repeated({ method: 'GET', path: '/v1/admin/doctor', signal }, { keyed: true });
  }

  /**
   * Carries out the fix of a finding, or with `dryRun` only tells its steps. Rejects with `not_found` when the finding is gone, has no fix, or
   * needs `force`.
   *
   * @example
   * const { findings } = await client.administration.doctor();
   * for (const { id, fix } of findings) {
   *   if (fix !== null) console.log(await client.administration.fix(id, { dryRun: true }));
   * }
   */
  async fix(findingId: string, options: FixOptions = {}): Promise<FixReport> {
    someText(findingId, 'findingId');
    checkOptions(options, FIX_OPTIONS);
    const { dryRun = false, force = false, reason, signal } = options;
    if (force) someText(reason, 'reason');
    const forced = { ...(force ? { force } : {}), ...(reason === undefined ? {} : { reason }) };
    return this.#order('/v1/admin/doctor/fixes', { finding_id: findingId, dry_run: dryRun, ...forced }, signal);
  }

  /**
   * The high-water mark of a resource and who raised it. Rejects with `volume_not_found`.
   *
   * @example
   * const { high_water_mark: mark } = await client.administration.fence('ledger/q3.csv');
   */
  async fence(resource: string, options: Cancellable = {}): Promise<Fence> {
    text(resource, 'resource');
    checkOptions(options, CANCELLABLE);
    const { signal } = options;
    return this.#transport.repeated({ method: 'GET', path: resourceUrlPath('/v1/admin/fences', resource), signal }, { keyed: true });
  }

  /**
   * Lets tokens go on above every mark, after a journal was restored or lost. Every lease ends. Rejects with `volume_unavailable`, `journal_unavailable`.
   *
   * @example
   * const { base } = await client.administration.rebase({ reason: 'the journal was restored' });
   * console.log('tokens go on above', base);
   */
  async rebase(options: OrderOptions): Promise<RebaseReport> {
    checkOptions(options, ORDER_OPTIONS);
    const { reason, signal } = options;
    someText(reason, 'reason');
    return this.#order('/v1/admin/fences/rebase', { reason }, signal);
  }

  /**
   * Takes over a volume that belongs to another gateway, which must be gone for good. Rejects with `volume_not_found`, `volume_unavailable`.
   *
   * @example
   * const { state } = await client.administration.adopt('ledger', { reason: 'the old host is gone for good' });
   * console.log(state);
   */
  async adopt(volume: string, options: OrderOptions): Promise<VolumeReadiness> {
    someText(volume, 'volume');
    checkOptions(options, ORDER_OPTIONS);
    const { reason, signal } = options;
    someText(reason, 'reason');
    return this.#order(`/v1/admin/volumes/${encodeURIComponent(volume)}/adopt`, { reason }, signal);
  }

  #order<T>(path: string, json: object, signal: AbortSignal | undefined): Promise<T> {
    return this.#transport.repeated({ method: 'POST', path, json, signal, limitMs: CLIENT_LIMITS.orderMsMax }, { keyed: false });
  }
}
