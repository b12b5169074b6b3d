import { availableParallelism } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';
import { ROW_IDS } from './rows/rows.ts';

export interface Options {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpMs: number;
  readonly only: readonly string[] | null;
  readonly peers: readonly string[] | null;
  readonly largeMib: number;
  readonly memoryMib: number;
  readonly leases: number;
  readonly marks: number;
  readonly intents: number;
  readonly nodes: number;
  readonly nginxWorkers: number;
  readonly nginxFsyncWorkers: number;
  readonly directory: string | null;
}

/** Reads the command line; commander itself answers `--help` and mistakes. */
export function readOptions(argv: readonly string[]): Options {
  const program = new Command('bench')
    .description('Measures Fencegate beside its peers: in the same run, in turns, on the same disk.')
    .option('--rounds <n>', 'rounds; the ratios are medians over them', whole, 5)
    .option('--seconds <n>', 'measured time of a turn', moreThan(0), 1)
    .option('--warm-up-ms <n>', 'time before it that does not count', moreThan(-1), 200)
    .option('--only <rows>', `rows, separated by commas: ${ROW_IDS.join(',')}`, list)
    .option('--peers <peers>', 'peers, separated by commas, such as fencegate,nginx,etcd', list)
    .option('--large-mib <n>', 'size of the large bodies', whole, 256)
    .option('--memory-mib <n>', 'size of the body of the memory row', whole, 1024)
    .option('--leases <n>', 'live leases of the heartbeat row', whole, 100_000)
    .option('--marks <n>', 'resources in the journal of the rows about a full one', whole, 1_000_000)
    .option('--intents <n>', 'writes that the start after a crash looks at', whole, 10_000)
    .option('--nodes <n>', 'resource nodes in the ensemble of the row about many', whole, 100_000)
    .option('--nginx-workers <n>', 'worker processes of nginx', whole, availableParallelism())
    .option('--nginx-fsync-workers <n>', 'worker processes of nginx with fsync', whole, 32)
    .option('--directory <path>', 'work in a plain directory there instead of on an ext4 of its own')
    .parse([...argv], { from: 'user' });
  const values = program.opts<
    Omit<Options, 'only' | 'peers' | 'directory'> & { only?: readonly string[]; peers?: readonly string[]; directory?: string }
  >();
  return { ...values, only: values.only ?? null, peers: values.peers ?? null, directory: values.directory ?? null };
}

function moreThan(bound: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isFinite(value) || value <= bound) throw new InvalidArgumentError(`must be a number above ${bound}`);
    return value;
  };
}

function whole(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError('must be a whole number from 1 up');
  return value;
}

function list(text: string): readonly string[] {
  return text.split(',').filter((item) => item !== '');
}
