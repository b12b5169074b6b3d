import type { StagedFacts, TargetFacts } from '../../src/domain/file-facts.ts';
import { resourceOf } from '../../src/domain/resource.ts';
import type { Staging, Volume } from '../../src/domain/volume.ts';

/** Seals a staged file that will be `path`. */
export async function sealAs(volume: Volume, staging: Staging, replaces: TargetFacts | null, path = 'sealed'): Promise<StagedFacts> {
  const place = await volume.locate(resourceOf(volume.name, [path], volume.folds));
  try {
    return await staging.seal(replaces, place);
  } finally {
    place.close();
  }
}
