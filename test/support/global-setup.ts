/** Runs once before all suites. */
export function setup(): void {}
