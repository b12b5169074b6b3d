/**
 * One line for people. That it cannot be told, as on a disk that is full or a terminal that is gone, changes nothing about what is done and how it
 * ends: a command that `exec` keeps must not go on without its keeper because of that.
 */
export function sayOnStandardError(line: string): void {
  try {
    process.stderr.write(`${line}\n`);
  } catch {
    // A file is written at once, and tells so.
  }
}

/** Pipes and terminals tell later. */
export function outliveStandardError(): void {
  process.stderr.on('error', () => undefined);
}
