import type { AuditDraft } from './audit-record.ts';
import type { FileFacts, StagedFacts } from './file-facts.ts';
import type { Resource } from './resource.ts';

/**
 * The intent: what a commit section is about to do, durable before it does it (presumed commit). It holds all that recovery
 * needs to tell whether the apply happened and to finish it. Names are names in the incarnation directory.
 */
export type ApplyPlan =
  /** `rename(inc/staged, target)`. */
  | { readonly kind: 'replace' }
  /** `link(inc/staged, target)`, then unlink: fails when the target exists. */
  | { readonly kind: 'create' }
  /** In place at `offset`, redo bytes are the staged file. Append: cut to `offset` first when redone. */
  | { readonly kind: 'append'; readonly offset: number; readonly lengthBytes: number; readonly mtimeNs: bigint }
  | { readonly kind: 'in_place'; readonly offset: number; readonly lengthBytes: number; readonly mtimeNs: bigint }
  /** `rename(target, inc/trash)`. */
  | { readonly kind: 'remove'; readonly trash: string }
  /** The three steps of a MOVE under a manifest; `source` is the file that moves. */
  | { readonly kind: 'move'; readonly from: Resource; readonly source: FileFacts; readonly manifest: string }
  /** One of several files under one manifest. */
  | { readonly kind: 'several'; readonly manifest: string }
  /** Directories carry no bytes and are exempt from the incarnation rule. */
  | { readonly kind: 'mkdir' }
  | { readonly kind: 'rmdir' };

export interface Intent {
  readonly operationId: string;
  readonly resource: Resource;
  readonly before: FileFacts | null;
  readonly staged: StagedFacts | null;
  readonly plan: ApplyPlan;
  /** The incarnation that wrote it. */
  readonly incarnation: string;
  /** The audit record that this intent is; its outcome is presumed `committed`. */
  readonly audit: AuditDraft;
}

/** What looking at the volume says about an intent. `finished`: recovery applied it now. */
export type Settlement = 'committed' | 'finished' | 'aborted' | 'unknown';

/** A verdict with what stands at the target now, where that is known. */
export interface Settled {
  readonly settlement: Settlement;
  readonly after: FileFacts | null;
}
