import { describe, expect, it } from 'vitest';
import { LocalLine, type Place } from '../../../src/client/local-line.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

const forever = { priority: 5, waitMs: undefined };

/** Enters in the background; `in` lists who is inside or was. */
function lab() {
  const clock = new FakeClock();
  const line = new LocalLine(clock);
  const entered: string[] = [];
  const places = new Map<string, Place>();
  const enter = (name: string, resources: string[], mode: 'exclusive' | 'shared' = 'exclusive', priority = 5): void => {
    void line.enter(resources, mode, { ...forever, priority }).then((place) => {
      entered.push(name);
      places.set(name, place);
    });
  };
  const leave = async (name: string): Promise<void> => {
    const place = places.get(name);
    if (place !== undefined) line.leave(place);
    await settle();
  };
  return { clock, line, entered, places, enter, leave };
}

describe('the tasks of one process', () => {
  it('enter one after the other, by priority, then in turn', async () => {
    const { entered, enter, leave } = lab();
    enter('a', ['v/x']);
    enter('b', ['v/x']);
    enter('c', ['v/x']);
    enter('important', ['v/x'], 'exclusive', 9);
    await settle();
    expect(entered).toEqual(['a']);
    await leave('a');
    await leave('a');
    expect(entered).toEqual(['a', 'important']);
    await leave('important');
    await leave('b');
    expect(entered).toEqual(['a', 'important', 'b', 'c']);
  });

  it('are not in the way of each other on different resources, and overlap on any common one', async () => {
    const { entered, enter, leave } = lab();
    enter('xy', ['v/x', 'v/y']);
    enter('z', ['v/z']);
    enter('yz', ['v/y', 'v/z']);
    enter('w', ['v/w']);
    await settle();
    expect(entered).toEqual(['xy', 'z', 'w']);
    await leave('xy');
    expect(entered).toEqual(['xy', 'z', 'w']);
    await leave('z');
    expect(entered).toEqual(['xy', 'z', 'w', 'yz']);
  });

  it('read together, but not past a writer who waits, nor over other sets of resources', async () => {
    const { entered, enter, leave } = lab();
    enter('r1', ['v/x'], 'shared');
    enter('r2', ['v/x'], 'shared');
    enter('r3', ['v/x', 'v/y'], 'shared');
    enter('w', ['v/x']);
    enter('r4', ['v/x'], 'shared');
    await settle();
    expect(entered).toEqual(['r1', 'r2']);
    await leave('r1');
    await leave('r2');
    expect(entered).toEqual(['r1', 'r2', 'r3']);
    await leave('r3');
    expect(entered.at(-1)).toBe('w');
    await leave('w');
    expect(entered.at(-1)).toBe('r4');
  });

  it('try, wait for a time, or until they are told not to; and are out of the line then', async () => {
    const { clock, line, entered, enter, leave } = lab();
    enter('a', ['v/x']);
    await settle();
    await expect(line.enter(['v/x'], 'exclusive', { ...forever, waitMs: 0 })).rejects.toMatchObject({
      code: 'lock_not_acquired',
      members: { local: true },
    });
    const timed = expect(line.enter(['v/x'], 'exclusive', { ...forever, waitMs: 100 })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    clock.advance(100);
    await timed;
    const controller = new AbortController();
    const told = expect(line.enter(['v/x'], 'exclusive', { ...forever, signal: controller.signal })).rejects.toThrow('stop');
    enter('b', ['v/x']);
    controller.abort(new Error('stop'));
    await told;
    await leave('a');
    expect(entered).toEqual(['a', 'b']);
  });

  it('become the writer when the other readers are gone, ahead of those who wait, and one at a time', async () => {
    const { line, entered, places, enter, leave } = lab();
    enter('r1', ['v/x'], 'shared');
    enter('r2', ['v/x'], 'shared');
    enter('w', ['v/x']);
    await settle();
    const [first, second] = [places.get('r1'), places.get('r2')];
    if (first === undefined || second === undefined) throw new Error('both read');
    const upgraded = line.upgrade(first, { waitMs: undefined });
    await expect(line.upgrade(second, { waitMs: undefined })).rejects.toMatchObject({ code: 'upgrade_conflict' });
    await leave('r2');
    await upgraded;
    expect(first.mode).toBe('exclusive');
    enter('r3', ['v/x'], 'shared');
    await settle();
    line.downgrade(first);
    await settle();
    expect(entered).toEqual(['r1', 'r2']);
    await leave('r1');
    expect(entered).toEqual(['r1', 'r2', 'w']);
  });

  it('keep what they had when they do not become the writer', async () => {
    const { line, entered, places, enter, leave } = lab();
    enter('r1', ['v/x'], 'shared');
    enter('r2', ['v/x'], 'shared');
    enter('w', ['v/x']);
    await settle();
    const first = places.get('r1');
    if (first === undefined) throw new Error('it reads');
    await expect(line.upgrade(first, { waitMs: 0 })).rejects.toMatchObject({ code: 'lock_not_acquired' });
    await leave('r2');
    expect(entered).toEqual(['r1', 'r2']);
    await leave('r1');
    expect(entered).toEqual(['r1', 'r2', 'w']);
  });
});
