/** A reason to stop that the person at the terminal can act on: printed as one line, without a stack. */
export class StopLine extends Error {}
