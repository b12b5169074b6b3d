/** Every verdict on a presented token comes from here, at admission and later: one order, one rule about what is shown, and the record has the mark that was met. */
import { type ErrorCode, GatewayError } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { TokenFacts } from '../domain/lease.ts';
import type { Resource } from '../domain/resource.ts';
import type { WriteDeps } from './deps.ts';
import type { Operation } from './operation.ts';
import { tokenVerdict } from './token-verdict.ts';

/** What the locks know of a token alone. The rest of their refusals is about contact, and stands. */
const ABOUT_THE_TOKEN: ReadonlySet<ErrorCode> = new Set(['stale_token', 'lease_ended', 'lease_is_shared']);

function isAboutTheToken(refused: unknown): boolean {
  return refused instanceof GatewayError && ABOUT_THE_TOKEN.has(refused.code);
}

type JudgeDeps = Pick<WriteDeps, 'leases'>;

/** Notes token and mark for the record. `null` when the token may write. */
export function judgeToken(deps: JudgeDeps, operation: Operation, token: FencingToken, facts: TokenFacts): GatewayError | null {
  operation.presented = token;
  operation.mark = facts.mark;
  const { leaseId, caller } = operation.envelope;
  return tokenVerdict(facts, {
    token,
    principal: caller.principal,
    ownsLeaseId: leaseId === null ? null : (leaseRef) => deps.leases.isLeaseId(leaseId, leaseRef),
  });
}

interface Presented {
  readonly resource: Resource;
  readonly token: FencingToken;
}

/** A refusal at admission, once it may be told: what is only in memory could come out otherwise at the next start. */
export async function toldAtAdmission(deps: JudgeDeps, operation: Operation, presented: Presented, refused: GatewayError): Promise<unknown> {
  if (!isAboutTheToken(refused)) return refused;
  const moved = await refusalTold(deps, operation, presented);
  return moved ? factsSay(deps, operation, presented, refused) : refused;
}

/**
 * The locks refused to pin the lease of a presented token, at once and for this caller as for any other. The answer is what the facts
 * say once they may be told, in the order of admission; where they say nothing (they moved on), or cannot be read, the refusal of the locks stands.
 */
export async function judgedAgain(deps: JudgeDeps, operation: Operation, presented: Presented, refused: unknown): Promise<unknown> {
  if (!isAboutTheToken(refused)) return refused;
  try {
    await refusalTold(deps, operation, presented);
  } catch (notYet) {
    return notYet;
  }
  return factsSay(deps, operation, presented, refused);
}

function refusalTold(deps: JudgeDeps, operation: Operation, { resource, token }: Presented): Promise<boolean> {
  return deps.leases.refusalTold(resource, token, operation.envelope.signal);
}

async function factsSay(deps: JudgeDeps, operation: Operation, { resource, token }: Presented, refused: unknown): Promise<unknown> {
  try {
    return judgeToken(deps, operation, token, await deps.leases.factsMet(resource, token)) ?? refused;
  } catch {
    // Without the journal the refusal is as good as before: it says no more than the locks knew.
    return refused;
  }
}
