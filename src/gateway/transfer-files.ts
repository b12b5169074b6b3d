/** What MOVE and COPY share: both names in one request, each with its own token or one lease over both. */
import { refuse } from '../domain/errors.ts';
import type { TargetFacts } from '../domain/file-facts.ts';
import type { TransferRequest } from '../domain/write.ts';
import type { Operation } from './operation.ts';
import { fileOrAbsent, replaceable } from './target-rules.ts';

/** The token for each name: its own, else the one of the header, which is then of a lease over both. */
export function transferTokens(operation: Operation, request: TransferRequest): { readonly from: string | null; readonly to: string | null } {
  const { presentedToken } = operation.envelope;
  operation.hasToken = (presentedToken ?? request.fromToken ?? request.toToken) !== null;
  return { from: request.fromToken ?? presentedToken, to: request.toToken ?? presentedToken };
}

/** Onto itself is refused, also under another spelling of the same name. */
export function assertTwoResources(request: TransferRequest): void {
  if (request.from.key === request.to.key) throw refuse('same_resource', 'The two names are the same resource.');
}

/** The rule about the new name: a file may be replaced only with `overwrite`. */
export function destinationRule(overwrite: boolean): (target: TargetFacts | null) => void {
  return (target) => {
    fileOrAbsent(target);
    if (target !== null && !overwrite) throw refuse('already_exists', 'The new name exists; "overwrite": true replaces it.');
    replaceable(target);
  };
}
