import { randomBytes } from 'node:crypto';
import type { Random } from '../domain/clock.ts';

/** The operating system's random source. */
export const systemRandom: Random = { bytes: (count) => randomBytes(count) };
