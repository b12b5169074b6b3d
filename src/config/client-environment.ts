import type { Environment } from './environment.ts';

/** The environment of this process, for commands that talk to a gateway and for the children that they start. */
export function environmentOfProcess(): Environment {
  return { ...process.env };
}
