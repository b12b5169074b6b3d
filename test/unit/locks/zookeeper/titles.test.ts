import { beforeEach, describe, expect, it } from 'vitest';
import { VolumeTaken, type VolumeTitle } from '../../../../src/domain/volume-title.ts';
import type { ContactState } from '../../../../src/locks/zookeeper/contact.ts';
import { ZookeeperCoordination } from '../../../../src/locks/zookeeper/zookeeper-coordination.ts';
import { FakeClock, seededRandom, settle } from '../../../support/fake-clock.ts';
import { FakeEnsemble, type FakeZk } from '../../../support/fake-ensemble.ts';

const UUID = 'ab'.repeat(16);
const OTHER_UUID = 'cd'.repeat(16);
const DIRECTORY = '01'.repeat(16);
const SECOND_DIRECTORY = '23'.repeat(16);

let clock: FakeClock;
let ensemble: FakeEnsemble;
let seed = 0;

interface Gateway {
  readonly coordination: ZookeeperCoordination;
  readonly untitled: (string | null)[];
  readonly states: ContactState[];
  highest: bigint | null;
  client(): FakeZk;
}

/** What a gateway process of its own has: a data directory with another uuid. Not started. */
function unstarted(
  uuid: string,
  { highest = null as bigint | null, coordinatorId = null as string | null, negotiatedMs = 15_000, session = null as string | null } = {},
): Gateway {
  const clients: FakeZk[] = [];
  const untitled: (string | null)[] = [];
  const states: ContactState[] = [];
  seed += 1;
  const made: Gateway = {
    untitled,
    states,
    highest,
    client: () => clients.at(-1) as FakeZk,
    coordination: new ZookeeperCoordination({
      clock,
      random: seededRandom(seed),
      root: '/locks',
      sessionMs: 15_000,
      gatewayUuid: uuid,
      queueMax: () => 100,
      open: (resume) => {
        const client = ensemble.open(negotiatedMs, resume);
        clients.push(client);
        return client;
      },
      before: { coordinatorId, session },
      highestToken: () => made.highest,
      onUntitled: (volume) => untitled.push(volume),
      remember: async () => undefined,
      log: () => undefined,
    }),
  };
  made.coordination.onState((state) => states.push(state));
  return made;
}

async function gateway(...terms: Parameters<typeof unstarted>): Promise<Gateway> {
  const made = unstarted(...terms);
  await made.coordination.start({ waits: false });
  return made;
}

async function opened({ coordination }: Gateway, directory: string, volume = 'v', uuid: string | null = UUID): Promise<VolumeTitle> {
  const title = await coordination.claim(volume, uuid, 'plain');
  await title.published(directory);
  for (const left of title.left) await title.gone(left);
  title.opened();
  return title;
}

const registered = () =>
  ensemble.children('/locks/.gateways').map((name) => JSON.parse(String(Buffer.from(ensemble.nodes.get(`/locks/.gateways/${name}`)?.data ?? []))));

beforeEach(() => {
  clock = new FakeClock();
  ensemble = new FakeEnsemble(() => clock.wallMs());
});

describe('whose a volume is at an ensemble', () => {
  it('is kept in a node of its uuid that goes with the session, the name of the volume, and a record of its directories', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    expect(ensemble.stat(`/locks/.owners/${UUID}`).ephemeralOwner).toBe(first.client().session.id);
    expect(String(Buffer.from(ensemble.nodes.get('/locks/v')?.data ?? []))).toContain(UUID);
    expect(registered()).toEqual([{ v: 1, gateway: 'g1', volumes: [{ uuid: UUID, name: 'v', directories: [DIRECTORY] }] }]);
  });

  it('R27: a second gateway is refused while the first lives, and owns it when that one is gone: what it left is fenced, then forgotten', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    const second = await gateway('g2');
    await expect(second.coordination.claim('v', UUID, 'plain')).rejects.toMatchObject({ lasting: false, message: expect.stringContaining('g1') });
    await first.coordination.stop();
    const title = await second.coordination.claim('v', UUID, 'plain');
    expect(title.left).toEqual([DIRECTORY]);
    expect(title.floor).toBe(ensemble.stat(`/locks/.owners/${UUID}`).czxid);
    await title.published(SECOND_DIRECTORY);
    await title.gone(DIRECTORY);
    expect(registered()).toEqual([{ v: 1, gateway: 'g2', volumes: [{ uuid: UUID, name: 'v', directories: [SECOND_DIRECTORY] }] }]);
  });

  it('keeps the record of a dead incarnation until each of its directories is gone, on each of its volumes', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    await opened(first, SECOND_DIRECTORY, 'w', OTHER_UUID);
    await first.coordination.stop();
    const second = await gateway('g2');
    await opened(second, '45'.repeat(16));
    expect(registered()).toContainEqual({ v: 1, gateway: 'g1', volumes: [{ uuid: OTHER_UUID, name: 'w', directories: [SECOND_DIRECTORY] }] });
    const third = await gateway('g3');
    await opened(third, '67'.repeat(16), 'w', OTHER_UUID);
    expect(registered().map(({ gateway: uuid }) => uuid)).toEqual(['g2', 'g3']);
  });

  it('refuses a volume of another uuid under a name that is taken, until an adoption finds nobody who owns that one', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    const second = await gateway('g2');
    await expect(second.coordination.claim('v', OTHER_UUID, 'plain')).rejects.toMatchObject({ lasting: true });
    await expect(second.coordination.claim('v', OTHER_UUID, 'adopt')).rejects.toThrow(VolumeTaken);
    await first.coordination.stop();
    await expect(second.coordination.claim('v', OTHER_UUID, 'plain')).rejects.toMatchObject({ lasting: true });
    await second.coordination.claim('v', OTHER_UUID, 'adopt');
    expect(String(Buffer.from(ensemble.nodes.get('/locks/v')?.data ?? []))).toContain(OTHER_UUID);
  });

  it('a volume without files has its uuid from the node of its name, so another gateway finds it owned', async () => {
    const first = await gateway('g1');
    (await first.coordination.claim('names', null, 'plain')).opened();
    const second = await gateway('g2');
    await expect(second.coordination.claim('names', null, 'plain')).rejects.toMatchObject({ lasting: false });
    await expect(second.coordination.claim('names', UUID, 'plain')).rejects.toMatchObject({ lasting: true });
    await first.coordination.stop();
    await second.coordination.claim('names', null, 'plain');
  });

  it('the same session may claim again, for its next incarnation, and its record follows', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    const again = await first.coordination.claim('v', UUID, 'plain');
    await again.published(SECOND_DIRECTORY);
    await again.gone(DIRECTORY);
    expect(registered()[0].volumes).toEqual([{ uuid: UUID, name: 'v', directories: [SECOND_DIRECTORY] }]);
  });

  it.each(['create', 'get', 'set', 'children', 'exists'] as const)(
    'a claim whose reply to %s is lost rejects, and may be asked again',
    async (call) => {
      const first = await gateway('g1');
      first.client().loseReply(call);
      const claim = first.coordination.claim('v', UUID, 'plain').then((title) => title.published(DIRECTORY));
      await claim.catch((thrown: unknown) => expect(thrown).toMatchObject({ code: 'coordinator_unavailable' }));
      await opened(first, DIRECTORY);
      expect(registered()).toEqual([{ v: 1, gateway: 'g1', volumes: [{ uuid: UUID, name: 'v', directories: [DIRECTORY] }] }]);
    },
  );

  it('removes records of dead incarnations that have nothing anywhere', async () => {
    await (await gateway('g1')).coordination.stop();
    await gateway('g2');
    expect(registered().map(({ gateway: uuid }) => uuid)).toEqual(['g2']);
  });

  it('a title that a third party took away is claimed again; one that only the watch was lost for goes on', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    first.client().fire(`/locks/.owners/${UUID}`);
    await settle();
    expect(first.untitled).toEqual([]);
    ensemble.remove(`/locks/.owners/${UUID}`, null);
    await settle();
    expect(first.untitled).toEqual(['v']);
  });

  it('after LOST every volume must be claimed anew, through the next session', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    first.client().expire();
    await settle();
    expect([first.untitled, first.states]).toEqual([[null], ['lost', 'reconnected']]);
    const title = await first.coordination.claim('v', UUID, 'plain');
    expect(title.left).toEqual([DIRECTORY]);
  });
});

describe('a session of our own past', () => {
  /** What the ensemble still has of it. */
  const owner = (): string => ensemble.stat(`/locks/.owners/${UUID}`).ephemeralOwner;

  it('that was LOST behind a cut link is resumed only to be closed, so that the next one need not wait for the ensemble to give it up', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    const lost = first.client();
    lost.cut();
    await clock.advanceAsync(10_000);
    expect(first.states).toEqual(['suspended', 'lost', 'reconnected']);
    const [, resumed] = ensemble.clients;
    expect([resumed?.session, resumed?.state, resumed?.counts.size]).toEqual([lost.session, 'over', 0]);
    expect((await first.coordination.claim('v', UUID, 'plain')).left).toEqual([DIRECTORY]);
    expect(owner()).toBe(first.client().session.id);
  });

  it('is tried again while no server can be reached, and nothing is begun before its end is known', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    const lost = first.client();
    ensemble.reachable = false;
    lost.cut();
    await clock.advanceAsync(60_000);
    expect([first.coordination.readiness().state, owner()]).toEqual(['lost', lost.session.id]);
    expect(ensemble.clients.length).toBeGreaterThan(2);
    expect(new Set(ensemble.clients.map(({ session }) => session.id))).toEqual(new Set([lost.session.id]));
    ensemble.reachable = true;
    await clock.advanceAsync(20_000);
    expect(first.coordination.readiness().state).toBe('connected');
    await opened(first, SECOND_DIRECTORY);
  });

  it('is closed by the next process over the same data directory; what it left is fenced by whoever owns the volume next', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    const { id, password, timeoutMs } = first.client().session;
    const again = await gateway('g1', { session: `${id}:${password}:${timeoutMs}` });
    // Somebody else is faster: the directory is his to clear before he grants.
    const other = await gateway('g2');
    expect((await other.coordination.claim('v', UUID, 'plain')).left).toEqual([DIRECTORY]);
    await expect(again.coordination.claim('v', UUID, 'plain')).rejects.toMatchObject({ lasting: false });
  });
});

describe('a start', () => {
  /** `null` while it is under way. */
  function began(waits: boolean): { readonly coordination: ZookeeperCoordination; over: unknown } {
    const { coordination } = unstarted('g1');
    const start = { coordination, over: null as unknown };
    coordination.start({ waits }).then(
      () => {
        start.over = 'begun';
      },
      (thrown: unknown) => {
        start.over = thrown;
      },
    );
    return start;
  }
  const strange = Buffer.from('{"v":2}');

  it('waits for servers that do not answer for as long as that takes, with all said to be lost', async () => {
    ensemble.reachable = false;
    const start = began(true);
    await clock.advanceAsync(3_600_000);
    expect([start.over, start.coordination.readiness().state, start.coordination.refusal()?.code]).toEqual([null, 'lost', 'coordinator_unavailable']);
    ensemble.reachable = true;
    await clock.advanceAsync(20_000);
    expect([start.over, start.coordination.readiness().state]).toEqual(['begun', 'connected']);
  });

  it('that somebody sits before ends after two session times without an answer', async () => {
    ensemble.reachable = false;
    const start = began(false);
    await clock.advanceAsync(29_000);
    expect(start.over).toBeNull();
    await clock.advanceAsync(20_000);
    expect(start.over).toMatchObject({ code: 'coordinator_unavailable' });
  });

  it.each([true, false])('ends after two session times of refusals, whether or not it waits (%s)', async (waits) => {
    ensemble.create('/locks', Buffer.alloc(0), '0', false);
    ensemble.create('/locks/.id', strange, '0', false);
    const start = began(waits);
    await clock.advanceAsync(29_000);
    expect(start.over).toBeNull();
    await clock.advanceAsync(3_000);
    expect(start.over).toMatchObject({ message: expect.stringContaining('identity') });
  });

  it('has two whole session times for each row of refusals: what is mended meanwhile ends no start', async () => {
    ensemble.create('/locks', Buffer.alloc(0), '0', false);
    ensemble.create('/locks/.id', strange, '0', false);
    const start = began(true);
    await clock.advanceAsync(25_000);
    ensemble.reachable = false;
    await clock.advanceAsync(60_000);
    ensemble.reachable = true;
    await clock.advanceAsync(25_000);
    expect(start.over).toBeNull();
    ensemble.remove('/locks/.id', null);
    await clock.advanceAsync(2_000);
    expect(start.over).toBe('begun');
  });

  it('is over when it is stopped, and begins no session any more', async () => {
    ensemble.reachable = false;
    const start = began(true);
    await settle();
    await start.coordination.stop();
    ensemble.reachable = true;
    await clock.advanceAsync(60_000);
    expect([start.over, ensemble.nodes.has('/locks')]).toEqual(['begun', false]);
  });
});

describe('whether a volume is certainly ours', () => {
  it('is judged at use: not before it is open, while it is suspended, and no more when the process wakes after two thirds of its session', async () => {
    const first = await gateway('g1');
    expect(first.coordination.doubt('v')).toMatch(/not open/);
    await opened(first, DIRECTORY);
    expect(first.coordination.doubt('v')).toBeNull();
    clock.stopFor(7_500);
    expect([first.coordination.readiness().state, first.coordination.doubt('v')]).toEqual(['suspended', null]);
    clock.stopFor(2_500);
    expect(first.coordination.doubt('v')).toMatch(/not known/);
    expect(first.states).toEqual(['suspended', 'lost']);
  });

  it('is not in doubt because a watch on its node has fired, as when the link goes, and the node cannot be looked at now', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    first.client().loseReply('get');
    first.client().fire(`/locks/.owners/${UUID}`);
    await settle();
    first.client().cut();
    expect([first.coordination.readiness().state, first.coordination.doubt('v')]).toEqual(['suspended', null]);
    clock.advance(10_000);
    expect([first.coordination.readiness().state, first.coordination.doubt('v')]).toEqual(['lost', expect.stringMatching(/not known/)]);
  });

  it('is not before it is opened again, in the next session and when somebody removed its node', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    first.client().expire();
    await settle();
    expect(first.coordination.readiness().state).toBe('connected');
    expect(first.coordination.doubt('v')).toMatch(/not open/);
    await opened(first, SECOND_DIRECTORY);
    expect(first.coordination.doubt('v')).toBeNull();
    ensemble.remove(`/locks/.owners/${UUID}`, null);
    await settle();
    expect(first.coordination.doubt('v')).toMatch(/not open/);
  });
});

describe('the session time', () => {
  it('that the server granted counts when it is shorter: it is proven as often as that needs', async () => {
    const first = await gateway('g1', { negotiatedMs: 3_000 });
    await clock.advanceAsync(30_000);
    expect([first.states, first.coordination.readiness().sessionMs]).toEqual([[], 3_000]);
  });

  it('counts no longer than was asked for, whatever the server granted', async () => {
    const first = await gateway('g1', { negotiatedMs: 40_000 });
    first.client().cut();
    await clock.advanceAsync(10_000);
    expect(first.states).toContain('lost');
  });
});

describe('tokens that could fall', () => {
  it('another coordinator than the one of before grants nothing, and its titles have no floor, until a rebase', async () => {
    const first = await gateway('g1', { highest: 7n, coordinatorId: 'ef'.repeat(16) });
    expect(first.coordination.readiness()).toMatchObject({ state: 'connected', reason: expect.stringContaining('rebase') });
    expect(first.coordination.refusal()).toMatchObject({ code: 'coordinator_unavailable' });
    expect((await first.coordination.claim('v', UUID, 'plain')).floor).toBeNull();
    expect(first.coordination.owner()).toMatchObject({ before: ['g1', 'ef'.repeat(16)] });
    await first.coordination.rebase(2n ** 40n);
    expect(first.coordination.refusal()).toBeNull();
    expect((await first.coordination.claim('v', UUID, 'plain')).floor).toBe(2n ** 40n + ensemble.stat(`/locks/.owners/${UUID}`).czxid);
  });

  it('R33: an ensemble that was put back while the gateway ran is noticed at the next session', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    first.highest = ensemble.zxid + 1_000n;
    first.client().expire();
    await settle();
    expect(first.coordination.readiness()).toMatchObject({ state: 'connected', reason: expect.stringContaining('behind') });
  });

  it('a base that another gateway raised since our session began counts from the next claim on', async () => {
    const first = await gateway('g1');
    const second = await gateway('g2');
    await first.coordination.rebase(2n ** 50n);
    expect((await second.coordination.claim('v', UUID, 'plain')).floor).toBeGreaterThan(2n ** 50n);
  });
});

describe('what a gateway was before', () => {
  it('is every coordinator of its process, also one of which it has granted nothing: volumes may still name it', async () => {
    const first = await gateway('g1');
    const old = first.coordination.owner().now;
    ensemble.remove('/locks/.id', null);
    first.client().expire();
    await settle();
    const { now, before } = first.coordination.owner();
    expect(now).not.toBe(old);
    expect(before).toEqual(['g1', old, now]);
  });
});

describe('an ensemble that was put back with our session in it', () => {
  it('is found out by the first change that goes back: all is lost, and nothing is granted before a rebase', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    first.highest = ensemble.zxid;
    ensemble.zxid -= 10n;
    await clock.advanceAsync(1_600);
    expect(first.states).toEqual(['lost', 'reconnected']);
    expect(first.coordination.refusal()).toMatchObject({ code: 'coordinator_unavailable', message: expect.stringContaining('put back') });
  });

  it('is found out also where an election has made its numbers higher: by the version of what the session proves itself with', async () => {
    const first = await gateway('g1');
    await opened(first, DIRECTORY);
    await clock.advanceAsync(15_000);
    for (const [path, node] of ensemble.nodes) if (path.endsWith('/live')) node.version -= 2;
    ensemble.zxid += 2n ** 32n;
    await clock.advanceAsync(3_000);
    expect(first.states).toEqual(['lost', 'reconnected']);
    expect(first.coordination.refusal()).toMatchObject({ code: 'coordinator_unavailable', message: expect.stringContaining('put back') });
    await first.coordination.rebase(2n ** 34n);
    expect(first.coordination.refusal()).toBe(null);
  });
});
