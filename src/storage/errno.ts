import { constants } from 'node:os';
import { type ErrorCode, GatewayError } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';

/**
 * The one place that knows what an errno means: its name, the code it leaves with, and what it proves about a change of the
 * volume that was tried after the intent (`write-protocol.md`, "Errors after the intent").
 */

/**
 * What an error proves about the call that met it. `definite`: it changed nothing. `answered`: the server of a network mount refused it;
 * the request may have been sent twice, and the refusal may be of the second time only, so look: if nothing has changed, nothing will.
 * `fenced_candidate`: nothing either, if the own incarnation directory is gone; look. `unknown`: the change may have happened, or may
 * still happen.
 */
export type Verdict = 'definite' | 'answered' | 'unknown' | 'fenced_candidate';

/** Linux has these and libuv knows none of them: the code is 'Unknown system error -116', only the number tells (trap X1). */
const UNNAMED: readonly (readonly [number, string])[] = [
  [112, 'EHOSTDOWN'],
  [116, 'ESTALE'],
  [117, 'EUCLEAN'],
  [121, 'EREMOTEIO'],
  [122, 'EDQUOT'],
];

const NAMES = new Map<number, string>([...UNNAMED, ...Object.entries(constants.errno).map(([name, number]) => [number, name] as const)]);

/** Raised by the calls of this room when the volume's lane did not let a call through, or it ran over its deadline. */
export class LaneError extends GatewayError {
  /** True when the kernel had the call: it may still happen. False: it was never made. */
  readonly started: boolean;
  /** Resolves when the kernel has let go of the call; at once when it never had it. */
  readonly ended: Promise<void>;

  constructor(detail: string, retryAfterMs: number, hung: Promise<void> | null) {
    super('volume_unavailable', { detail, retryAfterMs });
    this.started = hung !== null;
    this.ended = hung ?? Promise.resolve();
  }
}

/** The errno's name (`'ENOENT'`, `'ESTALE'`; `'E#523'` for a number without one), or `null` for what is no system error. */
export function errnoOf(thrown: unknown): string | null {
  if (!(thrown instanceof Error)) return null;
  const { errno, code } = thrown as NodeJS.ErrnoException;
  if (typeof errno === 'number') {
    const number = Math.abs(errno);
    const name = NAMES.get(number);
    if (name !== undefined) return name === 'EOPNOTSUPP' ? 'ENOTSUP' : name;
    if (typeof code === 'string' && code.startsWith('Unknown system error')) return `E#${number}`;
  }
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : null;
}

const DEFINITE: ReadonlySet<string> = new Set([
  'ENOSPC',
  'EDQUOT',
  'EFBIG',
  'EACCES',
  'EPERM',
  'EROFS',
  'EISDIR',
  'ENOTDIR',
  'EXDEV',
  'ENAMETOOLONG',
  'ELOOP',
  'EEXIST',
  'ENOTEMPTY',
  'EMLINK',
  'EMFILE',
  'ENFILE',
  'ENXIO',
  'ENODEV',
  'ETXTBSY',
  'EBUSY',
  'EILSEQ',
  'EINVAL',
]);

/**
 * What an error of one call proves. On a network mount no error proves anything by itself (traps F2, X7); a call that was never made
 * proves that it changed nothing, there too.
 */
export function classify(thrown: unknown, local: boolean): Verdict {
  if (thrown instanceof LaneError) return thrown.started ? 'unknown' : 'definite';
  // One of ours was thrown by a check before any call.
  if (thrown instanceof GatewayError) return thrown.code === 'outcome_unknown' ? 'unknown' : 'definite';
  const name = errnoOf(thrown);
  if (name === 'ENOENT' || name === 'ESTALE') return 'fenced_candidate';
  if (name === null || !DEFINITE.has(name)) return 'unknown';
  return local ? 'definite' : 'answered';
}

const ANSWERS: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  ENOENT: ['not_found', 'There is no such file or directory.'],
  ENOSPC: ['insufficient_storage', 'The volume has no space or no inodes left.'],
  EDQUOT: ['insufficient_storage', 'The quota of the volume is used up.'],
  EFBIG: ['insufficient_storage', 'The file would be larger than the volume can store.'],
  EMLINK: ['insufficient_storage', 'The directory cannot hold more entries of this kind.'],
  EACCES: ['forbidden', 'The gateway has no permission for this on the volume.'],
  EPERM: ['forbidden', 'The volume does not permit this.'],
  ETXTBSY: ['forbidden', 'The file is being executed.'],
  EROFS: ['volume_read_only', 'The volume is mounted read-only.'],
  EISDIR: ['is_a_directory', 'There is a directory at this path.'],
  ENOTDIR: ['not_a_directory', 'A part of the path is not a directory.'],
  ENOTEMPTY: ['directory_not_empty', 'The directory is not empty.'],
  EEXIST: ['already_exists', 'There is something at this path already.'],
  EXDEV: ['cross_volume', 'The path lies on another device than the volume.'],
  EBUSY: ['cross_volume', 'Something else is mounted at this path.'],
  ELOOP: ['symbolic_link', 'A part of the path is a symbolic link.'],
  ENXIO: ['special_file', 'The path names a special file.'],
  ENODEV: ['special_file', 'The path names a special file.'],
  ENAMETOOLONG: ['invalid_path', 'A name is longer than the volume can store.'],
  EILSEQ: ['invalid_path', 'The volume does not accept this name.'],
  EINVAL: ['invalid_path', 'The volume does not accept this name.'],
};

/**
 * The code an error leaves the room with; a `GatewayError` stays what it is. What the table does not name (EIO, ETIMEDOUT, ESTALE,
 * EMFILE, ...) is `volume_unavailable`: nothing is assumed about the file (case B6).
 */
export function gatewayErrorOf(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  const name = errnoOf(thrown);
  const answer = name === null ? undefined : ANSWERS[name];
  if (answer !== undefined) return new GatewayError(answer[0], { detail: answer[1], cause: thrown });
  if (name === null) return new GatewayError('internal', { detail: 'The gateway met an error of its own while it used a volume.', cause: thrown });
  return new GatewayError('volume_unavailable', {
    detail: `The volume answered with an error (${name}).`,
    retryAfterMs: LIMITS.settleRetryMs,
    cause: thrown,
  });
}

/** Runs `work` and maps whatever it throws; used at the edge of the room. */
export async function mapped<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw gatewayErrorOf(thrown);
  }
}
