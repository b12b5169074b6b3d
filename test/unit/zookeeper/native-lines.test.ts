import { beforeEach, describe, expect, it } from 'vitest';
import { NativeLines } from '../../../src/zookeeper/native-lines.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const refused = (time: string, port = 2181): string =>
  `2026-11-29 ${time},123:4567(0x7f0123456789):ZOO_ERROR@handle_socket_error_msg@2537: Socket [127.0.0.1:${port}] zk retcode=-4, errno=111(Connection refused)`;

let clock: FakeClock;
let logged: string[];
let lines: NativeLines;
beforeEach(() => {
  clock = new FakeClock();
  logged = [];
  lines = new NativeLines(clock, (line) => logged.push(line));
});

describe('what the native client says', () => {
  it('is in the log once in a minute for what is the same but for its time, with how often it was said since', () => {
    for (const time of ['10:00:00', '10:00:01', '10:00:02']) lines.write(refused(time));
    lines.write(refused('10:00:03', 2182));
    expect(logged).toEqual([refused('10:00:00'), refused('10:00:03', 2182)]);
    clock.advance(60_000);
    lines.write(refused('10:01:04'));
    lines.write(refused('10:01:05', 2182));
    expect(logged.slice(2)).toEqual([`${refused('10:01:04')} (and 2 times since it was last said)`, refused('10:01:05', 2182)]);
  });

  it('is remembered for so many kinds only, and none is lost for that', () => {
    for (let port = 0; port < 200; port += 1) lines.write(refused('10:00:00', port));
    expect(logged).toHaveLength(200);
  });
});
