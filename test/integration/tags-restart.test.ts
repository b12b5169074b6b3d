import { expect, it, onTestFinished } from 'vitest';
import { FakedClock } from '../support/faked-clock.ts';
import { GatewayClient } from '../support/gateway-client.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';

it("a version of the gateway's own keeps its strong tag when the gateway is killed and starts again, however young its file is", async () => {
  const directory = await newDirectory();
  onTestFinished(() => removeDirectory(directory));
  // An hour behind the file system, so that no file becomes old while this runs.
  const { environment } = new FakedClock(directory, -3_600);
  const first = await GatewayProcess.start(directory, { environment });
  const before = new GatewayClient(first.url);
  const written = await before.put('v/a.txt', 'one');
  await first.kill();
  await before.close();

  const second = await GatewayProcess.start(directory, { environment });
  const after = new GatewayClient(second.url);
  onTestFinished(() => after.close());
  const read = await after.get('v/a.txt');
  expect(read.headers['etag']).toBe(written.headers['etag']);
  expect(read.headers['etag']).toMatch(/^"/);
});
