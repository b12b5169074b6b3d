import { describe, expect, it } from 'vitest';
import { parseConnect } from '../../../src/zookeeper/connect-string.ts';

describe('a connect string', () => {
  it('names several servers and a chroot', () => {
    expect(parseConnect('zk1.example:2182, zk2,[::1]:2183/apps/fencegate')).toEqual({
      servers: [
        { host: 'zk1.example', port: 2182 },
        { host: 'zk2', port: 2181 },
        { host: '::1', port: 2183 },
      ],
      chroot: '/apps/fencegate',
    });
    expect(parseConnect('127.0.0.1:2181/')).toEqual({ servers: [{ host: '127.0.0.1', port: 2181 }], chroot: '' });
  });

  it.each(['', 'a:0', 'a:65536', 'a:b', 'a,,b', 'a b:1', '[::1', '::1:2181', '[1.2.3.4]:1', 'a:1/x/', 'a:1//x', 'a:1/x/../y', 'a:1/x\u0000y'])(
    'is refused with what is wrong: %j',
    (text) => {
      expect(parseConnect(text)).toBeTypeOf('string');
    },
  );
});
