import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type ClientDuplexStream, credentials, makeGenericClientConstructor, type ServiceDefinition, type ServiceError } from '@grpc/grpc-js';
import { loadFileDescriptorSetFromBuffer, loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { WireEvent } from '../../src/grpc/messages.ts';
import { GatewayProcess } from '../support/gateway-process.ts';
import { newDirectory, removeDirectory } from '../support/gateway-settings.ts';
import { refusal } from '../support/grpc-client.ts';
import { type GrpcGateway, startGrpc } from '../support/grpc-gateway.ts';
import { until } from '../support/until.ts';

/** Health, reflection, stop and restart of the gRPC service of a gateway process. */

async function gatewayOfTest(environment: Readonly<Record<string, string>> = {}): Promise<GrpcGateway> {
  const gateway = await startGrpc({ environment });
  onTestFinished(() => gateway.stop());
  return gateway;
}

describe('health', () => {
  it('is SERVING for the server and the lock service, and unknown for anything else', async () => {
    const client = (await gatewayOfTest()).client();
    expect(await client.health('')).toEqual({ status: 'SERVING' });
    expect(await client.health('fencegate.v1.LockService')).toEqual({ status: 'SERVING' });
    expect(await refusal(client.health('other'))).toMatch(/^NOT_FOUND/);
  });

  it('says NOT_SERVING as soon as the gateway drains, and takes no new leases', async () => {
    const gateway = await gatewayOfTest({ FENCEGATE_DRAIN_MS: '60000' });
    const client = gateway.client();
    const seen: string[] = [];
    const watch = client.watchHealth('fencegate.v1.LockService');
    watch.on('data', ({ status }: { status: string }) => seen.push(status)).on('error', () => undefined);
    await until(() => (seen.length > 0 ? true : null));
    // An upload that does not end keeps the gateway draining.
    const upload = new AbortController();
    const body = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('x')) });
    const put = fetch(`${gateway.process.url}/v1/files/v/slow`, { method: 'PUT', body, duplex: 'half', signal: upload.signal } as RequestInit).catch(
      () => null,
    );
    await until(async () => ((await client.lock('v/slow')).queue_length >= 0 ? true : null));
    gateway.process.signal('SIGTERM');
    await until(() => (seen.at(-1) === 'NOT_SERVING' ? true : null));
    expect(await refusal(client.acquire({ resource_path: 'v/a' }))).toMatch(/^UNAVAILABLE/);
    upload.abort();
    await put;
  });
});

describe('a stop', () => {
  it('tells who waits and who watches that the gateway drains; leases survive the restart, the same client goes on', async () => {
    const gateway = await gatewayOfTest();
    const client = gateway.client();
    const held = await client.acquire({ resource_path: 'v/a', session_timeout_ms: 600_000 });
    const waiting = refusal(client.acquire({ resource_path: 'v/a', wait_blocking: true }, { deadlineMs: 50_000 }));
    await until(async () => ((await client.lock('v/a')).queue_length === 1 ? true : null));
    const watch = client.watch({ resource_path: 'v/other' });
    watch.on('data', () => undefined);
    await once(watch, 'metadata');
    const watched = refusal(once(watch, 'end'));
    const alive = client.keepAlive();
    alive.on('data', () => undefined);
    await once(alive, 'metadata');
    const kept = refusal(once(alive, 'end'));
    await gateway.restart();
    expect(await waiting).toBe('UNAVAILABLE draining');
    expect(await watched).toBe('UNAVAILABLE draining');
    expect(await kept).toBe('UNAVAILABLE draining');
    const renewed = await until(() => client.renew({ lease_id: held.lease_id }).catch(() => null));
    expect(renewed).toMatchObject({ acquired: true, fencing_token: held.fencing_token });
    expect((await client.acquire({ resource_path: 'v/a' })).acquired).toBe(false);
    await client.release({ lease_id: held.lease_id });
    const next = await client.acquire({ resource_path: 'v/a' });
    expect(BigInt(next.fencing_token)).toBeGreaterThan(BigInt(held.fencing_token));
  });

  it('a watch that is resumed over a restart begins with the present state', async () => {
    const gateway = await gatewayOfTest();
    const client = gateway.client();
    const held = await client.acquire({ resource_path: 'v/a', session_timeout_ms: 600_000 });
    await gateway.restart();
    const events = await until(async () => {
      const stream = client.watch({ resource_path: 'v/a', from_seq: '5000' });
      // Ended by the test: what it is told of that is nothing to see.
      stream.on('error', () => undefined);
      const first = await once(stream, 'data').catch(() => null);
      stream.cancel();
      return first;
    });
    expect(events[0] as WireEvent).toMatchObject({ type: 'RESET', locks: [{ high_water_mark: held.fencing_token }] });
  });

  it('kill -9 while somebody waits: the client is told UNAVAILABLE', async () => {
    const gateway = await gatewayOfTest();
    const client = gateway.client();
    await client.acquire({ resource_path: 'v/a' });
    const waiting = refusal(client.acquire({ resource_path: 'v/a', wait_blocking: true }, { deadlineMs: 50_000 }));
    await until(async () => ((await client.lock('v/a')).queue_length === 1 ? true : null));
    await gateway.process.kill();
    expect(await waiting).toMatch(/^UNAVAILABLE/);
  });
});

describe('the port', () => {
  it('that is taken ends the start with one line', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as AddressInfo;
    const directory = await newDirectory();
    onTestFinished(() => removeDirectory(directory));
    const { code, stderr } = await GatewayProcess.failing(directory, { environment: { FENCEGATE_GRPC_PORT: String(port) } });
    expect(code).toBe(1);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toContain(`127.0.0.1:${port}`);
  });

  it('outlives clients that speak something else', async () => {
    const gateway = await gatewayOfTest();
    for (const bytes of [
      'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense that is no frame at all',
      '\0'.repeat(100_000),
    ]) {
      const socket = connect(gateway.port, '127.0.0.1');
      socket.on('error', () => undefined).resume();
      socket.write(bytes);
      await once(socket, 'close');
    }
    expect(await gateway.client().health('')).toEqual({ status: 'SERVING' });
  });

  it('outlives messages that are none', async () => {
    const gateway = await gatewayOfTest();
    const session = connectHttp2(`http://127.0.0.1:${gateway.port}`);
    onTestFinished(() => session.destroy());
    // One byte: field 1 of a kind that there is not.
    const frame = Buffer.from([0, 0, 0, 0, 1, 0x0f]);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/fencegate.v1.LockService/AcquireLock',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.end(frame);
    stream.resume();
    const [trailers] = (await Promise.race([once(stream, 'trailers'), once(stream, 'response')])) as [Record<string, string>];
    expect(trailers['grpc-status']).toBe('13');
    expect((await gateway.client().acquire({ resource_path: 'v/a' })).acquired).toBe(true);
  });

  it('is not opened unless it is configured', async () => {
    const gateway = await startGrpc({ environment: { FENCEGATE_GRPC_PORT: '0' } });
    onTestFinished(() => gateway.stop());
    expect(await refusal(gateway.client().lock('v/a'))).toMatch(/^UNAVAILABLE/);
  });

  it('is bound to an IPv6 address, too', async () => {
    const gateway = await gatewayOfTest({ FENCEGATE_HOST: '::1' });
    const client = gateway.client({ host: '[::1]' });
    expect((await client.acquire({ resource_path: 'v/a' })).acquired).toBe(true);
  });
});

describe('reflection', () => {
  const PROTOS = fileURLToPath(new URL('../../node_modules/@grpc/reflection/build/proto', import.meta.url));

  it.each(['v1', 'v1alpha'])('%s is enough to make a client from', async (version) => {
    const gateway = await gatewayOfTest();
    const known = loadSync(`grpc/reflection/${version}/reflection.proto`, { keepCase: true, longs: String, includeDirs: [PROTOS] });
    const reflection = serviceOf<Reflection>(known, `grpc.reflection.${version}.ServerReflection`, gateway.port);
    const stream = reflection.ServerReflectionInfo();
    const ask = async (question: object): Promise<Reply> => {
      stream.write(question);
      return ((await once(stream, 'data')) as [Reply])[0];
    };
    const { list_services_response: listed } = await ask({ list_services: '*' });
    expect(listed?.service.map(({ name }) => name).sort()).toEqual(['fencegate.v1.LockService', 'grpc.health.v1.Health']);
    const { file_descriptor_response: files } = await ask({ file_containing_symbol: 'fencegate.v1.LockService' });
    stream.end();
    const found = loadFileDescriptorSetFromBuffer(descriptorSet(files?.file_descriptor_proto ?? []), {
      keepCase: true,
      longs: String,
      defaults: true,
    });
    const locks = serviceOf<Locks>(found, 'fencegate.v1.LockService', gateway.port);
    const held = await new Promise<Record<string, unknown> | undefined>((resolve, reject) =>
      locks.AcquireLock({ resource_path: 'v/a' }, (error, answer) => (error === null ? resolve(answer) : reject(error))),
    );
    expect(held).toMatchObject({ acquired: true, fencing_token: expect.stringMatching(/^\d+$/) });
  });
});

/** A client of one service, closed when the test ends. */
function serviceOf<T>(definition: PackageDefinition, name: string, port: number): T {
  const Service = makeGenericClientConstructor(definition[name] as ServiceDefinition, name);
  const client = new Service(`127.0.0.1:${port}`, credentials.createInsecure());
  onTestFinished(() => client.close());
  return client as unknown as T;
}

/** `FileDescriptorSet`: every file as field 1. */
function descriptorSet(files: readonly Buffer[]): Buffer {
  const varint = (value: number): number[] => (value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]);
  return Buffer.concat(files.flatMap((file) => [Buffer.from([0x0a, ...varint(file.byteLength)]), file]));
}

interface Reply {
  readonly list_services_response?: { readonly service: readonly { readonly name: string }[] };
  readonly file_descriptor_response?: { readonly file_descriptor_proto: readonly Buffer[] };
}
interface Reflection {
  ServerReflectionInfo(): ClientDuplexStream<object, Reply>;
}
interface Locks {
  AcquireLock(request: object, done: (error: ServiceError | null, answer?: Record<string, unknown>) => void): void;
}
