/**
 * Names inside an incarnation directory. Each carries the incarnation or an operation id, so that none is ever made twice
 * and a successor can take every file over under its own name. They never depend on the target's name, which may be 255 bytes long (trap F21).
 */

export function stagedName(incarnation: string, number: number): string {
  return `${incarnation}-${number}`;
}

/** The redo entry beside the staged file of an append or an in-place write. */
export function redoName(staged: string): string {
  return `${staged}.redo`;
}

/** The file of a MOVE while it has both its old and its new name. */
export function moveLinkName(manifest: string): string {
  return `${manifest}.z`;
}

/** Where the old name of a MOVE goes. */
export function moveTrashName(manifest: string): string {
  return `${manifest}.trash`;
}

/** The file that the `index`-th target of several had before. */
export function keptOldName(manifest: string, index: number): string {
  return `${manifest}.old-${index}`;
}
