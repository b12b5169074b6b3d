import { defineConfig } from 'vitest/config';

/** One process for all files: reading the modules anew for each would take the guest longer than the tests. Run inside the guest by `npm run test:nfs`, with `TEST_VOLUMES` on an NFS mount; `dist` was built outside. */
const project = (name: string, include: string[], exclude: string[] = []) => ({
  test: { name, include, exclude, pool: 'forks' as const, execArgv: ['--import', 'tsx'], isolate: false, testTimeout: 240_000, hookTimeout: 240_000 },
});

export default defineConfig({
  test: {
    maxWorkers: 1,
    projects: [
      project('nfs', ['test/nfs/**/*.test.ts']),
      // Attributes are carried over on local volumes only.
      project('storage', ['test/unit/storage/**/*.test.ts'], ['test/unit/storage/rights.test.ts']),
      project('faults', ['test/faults/{kill,stop,races,stale-writers}.test.ts']),
    ],
  },
});
