import { LIMITS } from '../../domain/limits.ts';
import { type ZkClient, ZkError } from './zk-client.ts';
import { failedWith, orNoNode } from './zk-nodes.ts';

/**
 * `root/.gateways/<incarnation>`: what one coordinator session of one gateway has on which volume, so that somebody else can fence
 * it. Persistent; its ephemeral child `live` goes with the session. An incarnation without `live` is dead, and one that is dead and
 * has nothing anywhere is removed.
 */
export interface IncarnationRecord {
  readonly gateway: string;
  readonly volumes: readonly RegisteredVolume[];
}

export interface RegisteredVolume {
  readonly uuid: string;
  readonly name: string;
  /** In `.fencegate` of the volume. */
  readonly directories: readonly string[];
}

export interface SeenIncarnation extends IncarnationRecord {
  readonly name: string;
  /** Whether its session still exists, as far as this read knows. */
  readonly lives: boolean;
}

export class Incarnations {
  readonly #client: ZkClient;
  readonly path: string;

  constructor(client: ZkClient, root: string) {
    this.#client = client;
    this.path = `${root}/.gateways`;
  }

  async names(): Promise<{ readonly connection: number; readonly names: readonly string[] }> {
    return this.#client.children(this.path);
  }

  /** `null` when it has been removed. */
  async look(name: string): Promise<SeenIncarnation | null> {
    const found = await orNoNode(this.#client.get(`${this.path}/${name}`));
    return found === null ? null : { name, lives: found.stat.numChildren > 0, ...parseRecord(found.data) };
  }

  async all(): Promise<readonly SeenIncarnation[]> {
    const { names } = await this.names();
    return (await Promise.all(names.map((name) => this.look(name)))).filter((seen) => seen !== null);
  }

  /**
   * Version-checked; a record that no longer names any volume of a dead incarnation goes. Idempotent, so it may be asked again.
   * @returns false when there is no such record.
   */
  async change(name: string, changed: (volumes: readonly RegisteredVolume[]) => readonly RegisteredVolume[]): Promise<boolean> {
    const path = `${this.path}/${name}`;
    for (let tries = 0; tries < LIMITS.zookeeperSetsMax; tries += 1) {
      const found = await orNoNode(this.#client.get(path));
      if (found === null) return false;
      const record = parseRecord(found.data);
      const volumes = changed(record.volumes);
      try {
        if (volumes.length === 0 && found.stat.numChildren === 0) await this.#client.remove(path, found.stat.version);
        else await this.#client.set(path, recordData({ ...record, volumes }), found.stat.version);
        return true;
      } catch (thrown) {
        if (failedWith(thrown, 'no_node')) return false;
        if (!failedWith(thrown, 'bad_version', 'not_empty')) throw thrown;
      }
    }
    throw new ZkError('unknown', 'the record of an incarnation is changed by somebody else again and again');
  }
}

export function recordData({ gateway, volumes }: IncarnationRecord): Uint8Array {
  return Buffer.from(JSON.stringify({ v: 1, gateway, volumes }));
}

/** One that no version of ours wrote may have anything anywhere: nobody goes past it. */
function parseRecord(data: Uint8Array): IncarnationRecord {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(data).toString('utf8'));
  } catch {
    throw unreadable();
  }
  const { v, gateway, volumes } = (value ?? {}) as { readonly v?: unknown; readonly gateway?: unknown; readonly volumes?: unknown };
  if (v !== 1 || typeof gateway !== 'string' || !Array.isArray(volumes)) throw unreadable();
  return { gateway, volumes: volumes.map(parseVolume) };
}

function parseVolume(value: unknown): RegisteredVolume {
  const { uuid, name, directories } = (value ?? {}) as Partial<Record<keyof RegisteredVolume, unknown>>;
  if (typeof uuid !== 'string' || typeof name !== 'string' || !Array.isArray(directories)) throw unreadable();
  if (!directories.every((directory): directory is string => typeof directory === 'string' && /^[0-9a-f]{32}$/.test(directory))) throw unreadable();
  return { uuid, name, directories };
}

function unreadable(): ZkError {
  return new ZkError('bad_arguments', 'the record of an incarnation is not of a version that this gateway knows');
}
