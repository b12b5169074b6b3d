import { createHash } from 'node:crypto';
import type { Finding, FindingSeverity } from '../domain/administration.ts';
import type { Caller } from '../domain/principal.ts';
import type { Resource } from '../domain/resource.ts';

export interface Subject {
  readonly volume: string;
  readonly path: string | null;
}

/** What can safely be done about a finding. Whoever carries it out proves again that it is safe: a finding is a moment old. */
export interface Remedy {
  /** In one sentence. */
  readonly fix: string;
  /** What `carryOut` would do, in order; nothing is done to find that out. */
  readonly steps: readonly string[];
  /** What the record of the fix is about; `null` when it is about no one resource. */
  readonly subject: Subject | null;
  readonly leaseRef: string | null;
  /** @returns what came of it. Rejects with `not_found` when there is nothing left to do, `volume_unavailable`, `journal_unavailable`. */
  carryOut(caller: Caller): Promise<readonly string[]>;
}

export interface Diagnosis {
  readonly finding: Finding;
  readonly remedy: Remedy | null;
  /** What would harm a client that may be alive: done only when an administrator says so, and why. */
  readonly forced: ((reason: string) => Remedy) | null;
}

export interface Complaint {
  readonly code: string;
  readonly severity: FindingSeverity;
  readonly resource: string | null;
  /** Tells findings of one code and resource apart: a lease, an operation, a directory. */
  readonly subject?: string;
  readonly evidence: Readonly<Record<string, unknown>>;
  readonly remedy?: Remedy | null;
  readonly forced?: Diagnosis['forced'];
}

const ID_HEX = 16;

/** The id is the same for as long as the finding stands, so that a fix names what its reader saw. */
export function diagnosis({ code, severity, resource, subject = '', evidence, remedy = null, forced = null }: Complaint): Diagnosis {
  const id = findingId({ code, resource, subject });
  return { finding: { id, code, severity, resource, evidence: said(evidence), fix: remedy?.fix ?? null }, remedy, forced };
}

export function findingId({ code, resource, subject = '' }: Pick<Complaint, 'code' | 'resource' | 'subject'>): string {
  const about = createHash('sha256')
    .update(`${resource ?? ''}\0${subject}`)
    .digest('hex')
    .slice(0, ID_HEX);
  return `${code}.${about}`;
}

/** Advice is there or is not; other members may be `null`, which says that there is none. */
function said(evidence: Complaint['evidence']): Complaint['evidence'] {
  const { how, ...rest } = evidence;
  return how === null ? rest : evidence;
}

/** What a finding is about, as far as it says so. */
export function aboutOf({ resource, evidence }: Finding): { readonly subject: Subject | null; readonly leaseRef: string | null } {
  const { volume, lease_ref: leaseRef } = evidence;
  const slash = resource?.indexOf('/') ?? -1;
  const alone = typeof volume === 'string' ? { volume, path: null } : null;
  return {
    subject: resource === null || slash < 1 ? alone : { volume: resource.slice(0, slash), path: resource.slice(slash + 1) },
    leaseRef: typeof leaseRef === 'string' ? leaseRef : null,
  };
}

export function nameOf(resource: Resource | undefined): string | null {
  return resource?.name ?? null;
}
