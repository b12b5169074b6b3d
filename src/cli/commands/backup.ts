import { resolve } from 'node:path';
import { configOfProcess } from '../../config/load.ts';
import { GatewayError } from '../../domain/errors.ts';
import { backupJournal } from '../../journal/backup.ts';
import type { CommandContext } from '../command-context.ts';
import { EXIT } from '../exit-codes.ts';
import { UsageError } from '../usage-error.ts';

/** Copies the journal of this machine's gateway, which may run meanwhile, to a new file. Throws `ConfigError`, `UsageError`. */
export async function backup({ screen }: CommandContext, destination: string): Promise<number> {
  const { dataDir } = configOfProcess();
  const file = resolve(destination);
  try {
    await backupJournal(dataDir, file);
  } catch (thrown) {
    if (thrown instanceof GatewayError && thrown.code === 'invalid_request') throw new UsageError(`${file} exists already; name a new file`);
    throw thrown;
  }
  screen.out(`${file}\n`);
  return EXIT.ok;
}
