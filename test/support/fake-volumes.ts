import { type GatewayError, refuse } from '../../src/domain/errors.ts';
import { etagOf, type TargetFacts } from '../../src/domain/file-facts.ts';
import type { Resource } from '../../src/domain/resource.ts';
import type { OpenedFile, Volume, VolumePolicy, Volumes } from '../../src/domain/volume.ts';

export interface FakeFile {
  readonly bytes: Buffer;
  readonly mtimeNs: bigint;
  readonly etag?: string;
}

/** Volumes over a map from `volume/path` to bytes. Counts open descriptors. */
export class FakeVolumes implements Volumes {
  readonly files = new Map<string, FakeFile>();
  readonly policies: Map<string, VolumePolicy>;
  openDescriptors = 0;
  openedEver = 0;
  openError: GatewayError | null = null;
  listed: unknown = null;

  constructor(...policies: VolumePolicy[]) {
    this.policies = new Map(policies.map((policy) => [policy.name, policy]));
  }

  policy(name: string): VolumePolicy {
    const policy = this.policies.get(name);
    if (policy === undefined) throw refuse('volume_not_found', 'There is no volume of this name.');
    return policy;
  }

  get(name: string): Volume {
    const volume: Pick<Volume, 'name' | 'policy' | 'folds' | 'open' | 'list'> = {
      name,
      policy: this.policy(name),
      folds: false,
      open: async (resource) => this.#open(resource),
      list: async (directory, page) => {
        this.listed = { directory: directory?.name ?? null, page };
        return {
          entries: [
            { name: 'q3.csv', nameBase64: null, type: 'file', sizeBytes: 3, modifiedAt: '2026-01-01T00:00:00.000Z' },
            { name: '.fencegate', nameBase64: null, type: 'directory', sizeBytes: null, modifiedAt: null },
            { name: null, nameBase64: '/w==', type: 'file', sizeBytes: 1, modifiedAt: null },
          ],
          nextCursor: null,
        };
      },
    };
    return volume as Volume;
  }

  all(): readonly Volume[] {
    return [...this.policies.keys()].map((name) => this.get(name));
  }

  #open(resource: Resource): OpenedFile {
    if (this.openError !== null) throw this.openError;
    const file = this.files.get(resource.name);
    if (file === undefined) throw refuse('not_found', 'There is nothing of this name.');
    const facts: TargetFacts = {
      ino: 7n,
      sizeBytes: file.bytes.byteLength,
      mtimeNs: file.mtimeNs,
      kind: 'file',
      links: 1,
      mode: 0o644,
      uid: 0,
      gid: 0,
    };
    this.openDescriptors += 1;
    this.openedEver += 1;
    let open = true;
    return {
      facts,
      etag: file.etag ?? etagOf(facts),
      async *read(start, end) {
        for (let at = start; at < end; at += 65_536) yield file.bytes.subarray(at, Math.min(end, at + 65_536));
      },
      close: async () => {
        if (!open) throw new Error('closed twice');
        open = false;
        this.openDescriptors -= 1;
      },
    };
  }
}
