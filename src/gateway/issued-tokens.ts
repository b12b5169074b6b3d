import type { Journal, JournalOp } from '../domain/journal.ts';
import type { Floors } from './floors.ts';

/**
 * Tells a volume's stamp of each token once its grant is durable: a stamp that knows a later token than the journal means that the
 * journal was put back (`write-protocol.md`, "Restored or lost journal"). Marks are given with the floor of their volume. Everything
 * else goes straight to the journal.
 */
export function notingIssuedTokens(journal: Journal, floors: Floors, noteIssued: (volume: string, token: bigint) => void): Journal {
  return {
    commit: async (ops) => {
      const receipt = await journal.commit(ops);
      for (const op of ops) {
        if (isGrant(op)) noteIssued(op.resource.volume, op.token);
        floors.note(op);
      }
      return receipt;
    },
    get healthy() {
      return journal.healthy;
    },
    get reason() {
      return journal.reason;
    },
    settled: (operationId) => journal.settled(operationId),
    onSuperseded: (listener) => journal.onSuperseded(listener),
    mark: async (resourceKey) => floors.above(volumeOf(resourceKey), await journal.mark(resourceKey)),
    endedLease: (leaseRef) => journal.endedLease(leaseRef),
    endedSession: (sessionRef) => journal.endedSession(sessionRef),
    idempotent: (scope) => journal.idempotent(scope),
    operation: (key) => journal.operation(key),
    audit: (filter, page) => journal.audit(filter, page),
    auditStream: (filter, order, signal) => journal.auditStream(filter, order, signal),
    verify: (fromSeq, signal) => journal.verify(fromSeq, signal),
    head: () => journal.head(),
  };
}

function isGrant(op: JournalOp): op is Extract<JournalOp, { op: 'raise_mark' }> {
  return op.op === 'raise_mark';
}

/** A key begins with its volume, whose name has no slash. */
function volumeOf(resourceKey: string): string {
  return resourceKey.slice(0, resourceKey.indexOf('/'));
}
