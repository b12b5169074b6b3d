import { resolve, sep } from 'node:path';
import { LIMITS } from '../domain/limits.ts';
import { isVolumeName } from '../domain/resource.ts';
import type { VolumePolicy } from '../domain/volume.ts';
import type { FileSettings, VolumeSettings } from './file-schema.ts';
import { didYouMean, shown } from './problems.ts';
import type { CheckedYaml } from './yaml-file.ts';

export const SAMPLE_VOLUME = 'demo';

export interface VolumeSources {
  /** `FENCEGATE_VOLUMES`, as given. */
  readonly list: string | undefined;
  /** The checked YAML file with the name that messages show. */
  readonly file: (CheckedYaml<FileSettings> & { readonly source: string }) | null;
  readonly dataDir: string;
  /** What relative paths are relative to. */
  readonly directory: string;
}

/** The settings of every volume, and whether the default one with the sample files is among them. Pushes one line per problem. */
export function volumePolicies(sources: VolumeSources, problems: string[]): { volumes: VolumePolicy[]; sampleVolume: string | null } {
  const settings = sources.file?.value.volumes ?? {};
  const paths = sources.list === undefined ? new Map<string, string | null>() : parseVolumeList(sources.list, problems);
  const usesSample =
    paths.size === 0 &&
    sources.list === undefined &&
    Object.entries(settings).every(([name, own]) => name === SAMPLE_VOLUME && own.path === undefined);
  if (usesSample) paths.set(SAMPLE_VOLUME, resolve(sources.dataDir, 'volumes', SAMPLE_VOLUME));
  addFromFile(sources, paths, problems);
  const volumes = [...paths].map(([name, path]) => policy(name, path === null ? null : resolve(sources.directory, path), settings[name] ?? {}));
  checkLeases(sources, settings, problems);
  checkOverlap(volumes, sources.dataDir, problems);
  return { volumes, sampleVolume: usesSample ? SAMPLE_VOLUME : null };
}

/** `name=path,name=path`; `name=` is lock-only (`null`). */
export function parseVolumeList(list: string, problems: string[]): Map<string, string | null> {
  const paths = new Map<string, string | null>();
  for (const entry of list.split(',')) {
    const equals = entry.indexOf('=');
    const name = (equals < 0 ? entry : entry.slice(0, equals)).trim();
    if (equals < 0) problems.push(`FENCEGATE_VOLUMES: ${shown(entry)} has no "="; write name=path, or name= for a lock-only volume`);
    else if (!isVolumeName(name)) problems.push(`FENCEGATE_VOLUMES: ${shown(name)} is not a volume name ([a-z0-9][a-z0-9_-]{0,62})`);
    else if (paths.has(name)) problems.push(`FENCEGATE_VOLUMES: ${name} is named twice`);
    else paths.set(name, entry.slice(equals + 1).trim() || null);
  }
  return paths;
}

/** The file may set the path of a volume that the list does not have; both together must agree. */
function addFromFile(sources: VolumeSources, paths: Map<string, string | null>, problems: string[]): void {
  if (sources.file === null) return;
  for (const [name, own] of Object.entries(sources.file.value.volumes ?? {})) {
    const at = `${sources.file.source}:${sources.file.lineOf(['volumes', name])}`;
    if (!isVolumeName(name)) problems.push(`${at}: ${shown(name)} is not a volume name ([a-z0-9][a-z0-9_-]{0,62})`);
    else if (own.path === undefined) {
      if (!paths.has(name))
        problems.push(`${at}: volumes.${name} has no path${didYouMean(name, [...paths.keys()])}; give one, or "path: null" for a lock-only volume`);
    } else if (!paths.has(name)) paths.set(name, own.path);
    else if (!samePath(sources.directory, paths.get(name) ?? null, own.path))
      problems.push(`${at}: volumes.${name}.path differs from the one in FENCEGATE_VOLUMES`);
  }
}

function samePath(directory: string, a: string | null, b: string | null): boolean {
  return a === null || b === null ? a === b : resolve(directory, a) === resolve(directory, b);
}

function policy(name: string, path: string | null, own: VolumeSettings): VolumePolicy {
  return {
    name,
    path,
    tokens: own.tokens ?? 'issued',
    requireToken:
      own.require_token === undefined ? 'false' : own.require_token === 'once_leased' ? 'once_leased' : own.require_token ? 'true' : 'false',
    rangeWrites: own.range_writes ?? 'copy-on-write',
    onCoordinatorLoss: own.on_coordinator_loss ?? 'refuse',
    hardLinks: own.hard_links ?? 'refuse',
    names: own.names ?? 'portable',
    attributes: own.attributes ?? 'keep',
    readOnly: own.read_only ?? false,
    lease: {
      ttlMsMin: own.lease?.ttl_ms_min ?? LIMITS.leaseTtlMsMin,
      ttlMsMax: own.lease?.ttl_ms_max ?? LIMITS.leaseTtlMsMax,
      maxHoldMs: own.lease?.max_hold_ms ?? null,
      lockDelayMs: own.lease?.lock_delay_ms ?? 0,
      infinite: own.lease?.infinite ?? false,
    },
    limits: {
      bodyBytes: own.limits?.body_bytes ?? null,
      stagedBytes: own.limits?.staged_bytes ?? null,
      inFlight: own.limits?.in_flight ?? LIMITS.volumeInFlightDefault,
      queueLength: own.limits?.queue_length ?? LIMITS.contendersPerResourceMax,
    },
  };
}

/** Settings that each fit their form and together make no sense (B35): refused, never bent into shape. */
function checkLeases(sources: VolumeSources, settings: Record<string, VolumeSettings>, problems: string[]): void {
  for (const [name, { lease }] of Object.entries(settings)) {
    if (sources.file === null || lease === undefined) continue;
    const at = (key: string): string =>
      `${sources.file?.source}:${sources.file?.lineOf(['volumes', name, 'lease', key])}: volumes.${name}.lease.${key}`;
    const min = lease.ttl_ms_min ?? LIMITS.leaseTtlMsMin;
    const max = lease.ttl_ms_max ?? LIMITS.leaseTtlMsMax;
    if (min > max) problems.push(`${at('ttl_ms_min')}: ${min} is above ttl_ms_max (${max})`);
    if (max < min + LIMITS.leaseTtlMsMin && min <= max)
      problems.push(`${at('ttl_ms_max')}: ${max} leaves less than ${LIMITS.leaseTtlMsMin} ms above ttl_ms_min (${min})`);
    if (lease.max_hold_ms !== undefined && lease.max_hold_ms < min)
      problems.push(`${at('max_hold_ms')}: ${lease.max_hold_ms} is below ttl_ms_min (${min})`);
  }
}

/** By name only; the volumes compare devices and inodes themselves when they are opened. */
function checkOverlap(volumes: readonly VolumePolicy[], dataDir: string, problems: string[]): void {
  const placed = volumes.flatMap(({ name, path }) => (path === null ? [] : [{ name, path }]));
  placed.forEach((volume, index) => {
    if (isWithin(dataDir, volume.path))
      problems.push(`volume ${volume.name}: ${volume.path} contains the data directory ${dataDir}; the journal must not lie on a volume`);
    for (const other of placed.slice(index + 1)) {
      if (isWithin(volume.path, other.path) || isWithin(other.path, volume.path))
        problems.push(`volumes ${volume.name} and ${other.name} overlap: ${volume.path}, ${other.path}`);
    }
  });
}

function isWithin(inner: string, outer: string): boolean {
  return inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : outer + sep);
}
