import { defineConfig } from 'vitest/config';

/** Worker threads and child processes of the product are started from TypeScript sources, hence `tsx`. */
const execArgv = ['--import', 'tsx'];

const project = (name: string, timeoutMs: number) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    pool: 'forks' as const,
    execArgv,
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
  },
});

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    maxWorkers: 2,
    projects: [
      project('unit', 10_000),
      project('contract', 20_000),
      project('integration', 60_000),
      project('faults', 120_000),
      project('simulation', 60_000),
    ],
  },
});
