import { defineConfig } from 'vitest/config';

/** One process for all files: reading the modules anew for each would take the guest longer than the tests. Run inside the guest by `npm run test:nfs`, with `TEST_VOLUMES` on an NFS mount; `dist` was built outside. */
const project = (name: string, include: string[], exclude: string[] = []) => ({
  test: { name, include, exclude, pool: 'forks' as const, isolate: false, testTimeout: 240_000, hookTimeout: 240_000 },
});

export default defineConfig({
  test: {
    maxWorkers: 1,
    projects: [
      project('nfs', ['test/nfs/**/*.test.ts']),
      // What these set by hand (`trusted.*`, on version 4 a POSIX ACL) is not to be had on NFS; `test/nfs/attributes.test.ts` has what is.
      project('storage', ['test/unit/storage/**/*.test.ts'], ['test/unit/storage/{rights,attribute-calls}.test.ts']),
      project('faults', ['test/faults/{kill,stop,races,stale-writers}.test.ts']),
    ],
  },
});
