import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const RUN = fileURLToPath(new URL('../support/nfs-lab/run.ts', import.meta.url));

it('where no guest can be started, npm run test:nfs says why in one line, and nothing has failed', () => {
  // No program is found, and none can be installed.
  const { status, stdout } = spawnSync(process.execPath, ['--import', 'tsx', RUN, '--short'], { env: { PATH: '/nowhere' }, encoding: 'utf8' });
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^NFS is not shown here: it needs .+\nnfs: 0 passed, 0 failed, 1 skipped\n$/)]);
});
