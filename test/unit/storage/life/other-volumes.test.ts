import * as fs from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { soleTitles } from '../../../../src/domain/volume-title.ts';
import { ownerBytes } from '../../../../src/storage/life/owner-file.ts';
import { type Life, LivingVolume, type Opened } from '../../../support/living-volume.ts';

let living: LivingVolume;
let opened: Opened[] = [];
beforeEach(() => {
  living = new LivingVolume();
  opened = [];
});
afterEach(async () => {
  for (const volume of opened) await volume.close();
  living.remove();
});

const INNER = ['team', 'inner'];

/** A volume in the directory of `living`, below the root of that one. */
function startInner(life: Life) {
  fs.mkdirSync(living.path(...INNER), { recursive: true });
  return living.start({ ...life, policy: { path: living.path(...INNER) } });
}

async function open(life: Life): Promise<Opened> {
  const volume = await living.open(life);
  opened.push(volume);
  return volume;
}

/** As another gateway's start leaves it. */
function mark(directory: string, owner = 'gateway-2'): void {
  fs.mkdirSync(`${directory}/.fencegate`, { recursive: true });
  fs.writeFileSync(`${directory}/.fencegate/owner`, ownerBytes({ owner, volume: 'f00d' }));
}

const refused = {
  kind: 'closed',
  ownedByAnother: true,
  reason: expect.stringMatching(/volume of gateway-2 \(\.\.\/\.\.\/\.fencegate\/owner/),
  findings: [expect.objectContaining({ code: 'inside_another', severity: 'error' })],
};

describe('a volume inside the volume of another gateway', () => {
  it.each(['plain', 'rebase', 'adopt'] as const)(
    'stays closed in a start of kind %s, says where that one begins, and nothing is made in it',
    async (mode) => {
      mark(living.root);
      expect(await startInner({ mode })).toMatchObject(refused);
      expect(fs.readdirSync(living.path(...INNER))).toEqual([]);
    },
  );

  it('stays closed too when the other was marked while this one started', async () => {
    const sole = soleTitles('gateway-1');
    let asked = 0;
    const owner = () => {
      asked += 1;
      // The second question comes after the first look up.
      if (asked === 2) mark(living.root);
      return sole.owner();
    };
    expect(await startInner({ titles: { ...sole, owner } })).toMatchObject(refused);
  });

  it('stays closed where nobody can read whose the other is', async () => {
    mark(living.root);
    fs.writeFileSync(living.control('owner'), '{');
    expect(await startInner({})).toMatchObject({ kind: 'closed', findings: [{ code: 'inside_another' }] });
  });

  it('opens when the other one is marked as its own, or is no volume: a directory without owner, a file of that name', async () => {
    const close = async (life: Life = {}) => {
      const result = await startInner(life);
      if (result.kind === 'open') await result.close();
      return result.kind;
    };
    mark(living.root, 'gateway-1');
    expect(await close()).toBe('open');
    fs.rmSync(living.control('owner'));
    expect(await close()).toBe('open');
    fs.rmSync(living.control(), { recursive: true });
    fs.writeFileSync(living.control(), '');
    expect(await close()).toBe('open');
  });
});

describe.each([{ network: false }, { network: true }])(
  'a walk through a volume that has one of another gateway inside (network: $network)',
  ({ network }) => {
    const locate = async ({ volume }: Opened, path: string): Promise<void> => (await volume.locate(living.resource(path))).close();

    it('is refused at its root and anywhere below, and goes on beside it', async () => {
      mark(living.path(...INNER));
      fs.mkdirSync(living.path(...INNER, 'deep'));
      const volume = await open({ network });
      for (const path of ['team/inner/a', 'team/inner/deep/a', 'team/inner/missing/a'])
        await expect(locate(volume, path)).rejects.toMatchObject({ code: 'cross_volume' });
      await locate(volume, 'team/a');
      await locate(volume, 'a');
    });

    it('sees one that was moved there since, and goes on where it is gone or is its own', async () => {
      fs.mkdirSync(living.path('team'));
      const volume = await open({ network });
      await locate(volume, 'team/a');
      fs.mkdirSync(living.path('elsewhere'));
      mark(living.path('elsewhere'));
      fs.renameSync(living.path('elsewhere'), living.path('team', 'moved'));
      await expect(locate(volume, 'team/moved/a')).rejects.toMatchObject({ code: 'cross_volume' });
      fs.rmSync(living.path('team', 'moved', '.fencegate'), { recursive: true });
      await locate(volume, 'team/moved/a');
      mark(living.path('team', 'mine'), 'gateway-1');
      await locate(volume, 'team/mine/a');
    });
  },
);
