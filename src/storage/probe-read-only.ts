import type { Descriptor } from './descriptor.ts';
import type { FileCalls } from './file-calls.ts';
import { fileSystemOf } from './file-system.ts';
import type { ProbeReport } from './probe.ts';

/** What is known of a volume where nothing may be written: no fence is needed there, and a coarse key does no harm. */
export async function probeReadOnly(calls: FileCalls, root: Descriptor): Promise<ProbeReport> {
  const { type, local } = fileSystemOf((await calls.statfs(root)).type);
  return {
    fileSystem: type,
    local,
    foldsCase: !local,
    foldsUnicode: !local,
    folds: !local,
    hardLinks: false,
    reflink: false,
    mtimeGranularityNs: 1_000n,
    fenceHolds: false,
  };
}
