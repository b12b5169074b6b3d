import { defineConfig } from 'vitest/config';

/** `dist` and Debian packages, for suites that start the product as it is shipped. */
const shipped = ['test/support/global-setup.ts'];

const project = (name: string, timeoutMs: number, globalSetup: string[] = []) => ({
  test: {
    name,
    globalSetup,
    include: [`test/${name}/**/*.test.ts`],
    pool: 'forks' as const,
    // Most of the time of a small file goes by in loading the modules; files that share a process load them once.
    isolate: false,
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
  },
});

export default defineConfig({
  test: {
    // On two processors: more than half of the time of the faults, and a third of all, goes by in waiting for deadlines.
    maxWorkers: 4,
    projects: [
      project('unit', 20_000, shipped),
      project('types', 10_000),
      project('contract', 20_000, shipped),
      project('integration', 60_000, shipped),
      project('faults', 120_000, shipped),
      project('simulation', 60_000),
    ],
  },
});
