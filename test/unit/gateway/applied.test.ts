import { expect, it } from 'vitest';
import { refuse } from '../../../src/domain/errors.ts';
import { noSteps } from '../../../src/domain/steps.ts';
import type { Place, Volume } from '../../../src/domain/volume.ts';
import { makeNamesDurable } from '../../../src/gateway/applied.ts';
import type { Operation } from '../../../src/gateway/operation.ts';

const operation = { id: 'op-1', reached: noSteps.reached } as unknown as Operation;
const place = {} as Place;

it.each([
  ['is closed', refuse('volume_unavailable', 'It is being started.')],
  ['is not what it was', refuse('not_found', 'The parent directory does not exist.')],
  ['has a bug', new Error('a bug')],
])('I3: once the bytes are visible no write is told to have failed: a volume that %s by then leaves it outcome_unknown', async (_, thrown) => {
  const synced: Place[] = [];
  const volume = { syncParent: (at: Place) => (synced.push(at) === 2 ? Promise.reject(thrown) : Promise.resolve()) } as unknown as Volume;
  await expect(makeNamesDurable(operation, volume, [place, place, place])).rejects.toMatchObject({
    code: 'outcome_unknown',
    members: { operation_id: 'op-1' },
    cause: thrown,
  });
  expect(synced).toHaveLength(2);
});
