import type { Resource } from '../../domain/resource.ts';

/** The resource of another path on the same volume, for a place on it; the fence key plays no part there. */
export function resourceLike(like: Pick<Resource, 'volume'>, path: string): Resource {
  const name = `${like.volume}/${path}`;
  return { volume: like.volume, path, name, key: name };
}
