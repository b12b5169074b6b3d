import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { configOfProcess } from '../../config/load.ts';
import { GatewayError } from '../../domain/errors.ts';
import { backupJournal } from '../../journal/backup.ts';
import { journalFile } from '../../journal/data-directory.ts';
import type { CommandContext } from '../command-context.ts';
import { EXIT } from '../exit-codes.ts';
import { complainOfNoJournal } from '../no-journal.ts';
import { outJson } from '../screen.ts';
import { UsageError } from '../usage-error.ts';

/** Copies the journal of this machine's gateway, which may run meanwhile, to a new file. Throws `ConfigError`, `UsageError`. */
export async function backup({ screen, host }: CommandContext, destination: string, { json }: { readonly json?: boolean }): Promise<number> {
  const { dataDir } = configOfProcess();
  const file = resolve(destination);
  if (!existsSync(journalFile(dataDir))) {
    complainOfNoJournal(host, dataDir);
    return EXIT.failed;
  }
  try {
    await backupJournal(dataDir, file);
  } catch (thrown) {
    if (thrown instanceof GatewayError && thrown.code === 'invalid_request') throw new UsageError(`${file} exists already; name a new file`);
    throw thrown;
  }
  if (json === true) outJson(screen, { file });
  else screen.out(`${file}\n`);
  return EXIT.ok;
}
