import type { AddressInfo } from 'node:net';
import type { Gateway } from './cli/serve.ts';
import type { Authenticator } from './config/authenticate.ts';
import type { Config } from './config/config.ts';
import { readAuditKey, readSigningKeys, readTls } from './config/secret-files.ts';
import { Doctor } from './doctor/doctor.ts';
import { RefusalWindow } from './doctor/refusal-window.ts';
import { GatewayError, refuse } from './domain/errors.ts';
import { LIMITS } from './domain/limits.ts';
import { noSteps, type Steps } from './domain/steps.ts';
import { createAdministration } from './gateway/administration.ts';
import { CommitMtimes } from './gateway/commit-mtimes.ts';
import { CommittedDigests } from './gateway/committed-digests.ts';
import { Floors } from './gateway/floors.ts';
import { createHealth, readinessOf } from './gateway/health.ts';
import { RunningKeys } from './gateway/idempotency.ts';
import { notingIssuedTokens } from './gateway/issued-tokens.ts';
import { journalKnows, leasesComeBack, tokensAbove, volumeRecord, writersBefore } from './gateway/recover.ts';
import { ResourceMutex } from './gateway/resource-mutex.ts';
import { createSettleLoop } from './gateway/settle-loop.ts';
import { StagedQuota } from './gateway/staged-quota.ts';
import { startRecord } from './gateway/start-record.ts';
import { createWriter } from './gateway/writer.ts';
import { buildApp } from './http/app.ts';
import { closeApp, OpenRequests } from './http/draining.ts';
import { statusOf } from './http/status.ts';
import { openJournal } from './journal/open-journal.ts';
import { createLockService } from './locks/create-lock-service.ts';
import { gatewayMetrics } from './observability/gateway-metrics.ts';
import type { Logger } from './observability/logger.ts';
import { countingRefusals, measuredJournal, measuredLocks } from './observability/measured-ports.ts';
import { linuxTime, SystemClock } from './observability/system-clock.ts';
import { systemRandom } from './observability/system-random.ts';
import { VolumeSet } from './storage/volume-set.ts';

export interface Parts {
  readonly logger: Logger;
  readonly authenticator: Authenticator;
}

/** Builds every part of a gateway and starts it: the whole wiring. `overrides` are for tests of the protocol's steps. */
export async function compose(config: Config, { logger, authenticator }: Parts, overrides: { readonly steps?: Steps } = {}): Promise<Gateway> {
  const time = linuxTime();
  const clock = new SystemClock(time);
  const random = systemRandom;
  const auditKey = readAuditKey(config);
  const opened = await openJournal({
    dataDirectory: config.dataDir,
    clock,
    random,
    takeoverAfterMs: config.takeoverAfterMs,
    auditKeys: auditKey === null ? [] : [auditKey],
    retention: config.audit,
  });
  const { start, takeOver } = opened;
  const metrics = gatewayMetrics({ lanes: () => volumes.lanes(), locks: () => locks.figures(), journal: () => opened.stats() });
  const refusalWindow = new RefusalWindow(clock);
  const refusals = refusalWindow.hearing(countingRefusals(opened.refusals, metrics));
  const names = config.volumes.map(({ name }) => name);
  const journal = notingIssuedTokens(measuredJournal(opened.journal, metrics, clock), new Floors(start, names), (volume, token) =>
    volumes.get(volume).noteIssued(token),
  );
  const predecessorExited = takeOver?.seenToExit ?? true;
  const mtimes = new CommitMtimes(start);
  const volumes = new VolumeSet({
    policies: config.volumes,
    clock,
    random,
    gatewayUuid: start.gatewayUuid,
    journalUuid: start.journalUuid,
    markedAsBackup: () => start.markedAsBackup,
    record: (volume) => volumeRecord({ start, journal, clock }, volume),
    journalKnows: (volume) => journalKnows(start, [volume]),
    writerOf: writersBefore(start, names, predecessorExited),
    endOldProcess: () => Promise.resolve(predecessorExited),
    lastMtimeNs: (volume) => mtimes.highest(volume),
    onChange: (volume) => {
      locks.raiseAbove(volume.ceilingFound ?? 0n);
      logger.info({ volume: volume.name, ...volume.state(), fence_level: volume.fenceLevel }, 'volume');
    },
    onStampFailure: (volume, error) => logger.error({ volume, error }, 'the token stamp could not be written'),
  });
  const locks = createLockService({
    clock,
    random,
    journal,
    refusals,
    ceilings: volumes,
    statusOf,
    policy: (volume) => volumes.policy(volume),
    fenceLevel: (volume) => (volumes.policy(volume).path === null ? null : volumes.get(volume).fenceLevel),
    coordinatorId: start.gatewayUuid,
    signingKeys: readSigningKeys(config),
  });
  const settleLoop = createSettleLoop(clock, (error) => logger.error({ error }, 'an unknown outcome could not be settled yet'));
  const digests = new CommittedDigests(journal);
  const writer = createWriter({
    volumes,
    journal,
    refusals,
    leases: locks.writeLeases,
    clock,
    random,
    steps: overrides.steps ?? noSteps,
    statusOf,
    mutex: new ResourceMutex(clock),
    settleLoop,
    runningKeys: new RunningKeys(),
    quota: new StagedQuota(),
    digests,
    mtimes,
  });
  const doctor = new Doctor({
    clock,
    statusOf,
    journal,
    refusals,
    refusalWindow,
    volumes: () => volumes.all(),
    readiness: () => volumes.all().map((volume) => readinessOf(volume)),
    lanes: () => volumes.lanes(),
    locks: locks.service,
    conditions: () => locks.conditions(),
    endGone: (caller, leaseRef) => locks.endGone(caller, leaseRef),
    waitFor: () => locks.waitFor(),
    coordinator: () => locks.readiness(),
    unsettled: settleLoop,
  });
  let draining = false;
  const deadline = new AbortController();
  const app = buildApp({
    writer,
    volumes,
    locks: measuredLocks(locks.service, metrics, clock),
    events: locks.events,
    journal,
    refusals,
    digests,
    clock,
    random,
    log: logger,
    administration: createAdministration({
      volumes,
      journal,
      start,
      breakLock: (caller, request) => locks.breakLock(caller, request),
      rebase: { start, journal, clock, volumes: volumes.all(), locks },
      doctor,
    }),
    health: createHealth({
      volumes,
      journal,
      coordinator: () => locks.readiness(),
      isDraining: () => draining,
      distrust: () => distrustOf(start, volumes),
    }),
    authenticate: ({ authorization }, peer) => authenticator.authenticate({ authorization, certificateName: peer?.commonName ?? null }),
    metricsText: () => metrics.text(),
    isDraining: () => draining,
    deadline: deadline.signal,
    settings: {
      tls: config.tls === null ? null : readTls(config.tls),
      authenticated: authenticator.required,
      allowedHosts: config.allowedHosts,
      allowedOrigins: config.allowedOrigins,
      bodyBytesMax: config.bodyMaxBytes,
      rateLimitPerSecond: config.rateLimitPerSecond,
      uploadsPerPrincipalMax: config.uploads.perPrincipalMax,
      uploadIdleMs: config.uploads.idleMs,
      uploadMinBytesPerSecond: config.uploads.bytesPerSecondMin,
      eventLoopDelayMsMax: LIMITS.eventLoopDelayMsMax,
    },
  });
  const openRequests = new OpenRequests(app);
  app.addHook('onResponse', (request, reply, done) => {
    metrics.request(request.method, request.routeOptions.url ?? 'none', reply.statusCode, reply.elapsedTime / 1_000);
    done();
  });
  const gateway: Gateway = {
    failed: new Promise((resolve) => journal.onSuperseded(() => resolve(new Error('another process took the data directory over')))),
    async start() {
      try {
        await volumes.start();
        assertOwnsSomething(volumes);
        const ceilings = volumes.all().map(({ ceilingFound }) => ceilingFound);
        await locks.restore(start, {
          above: tokensAbove(journalKnows(start, names), ceilings),
          comeBack: leasesComeBack(
            start,
            volumes.all().map(({ verdict }) => verdict),
          ),
        });
        await journal.commit([{ op: 'audit', record: startRecord(clock, takeOver === null ? 'start' : 'take_over') }]);
        await app.listen({ host: config.host, port: config.port });
      } catch (error) {
        await gateway.stop();
        throw error;
      }
      const { address, family, port } = app.server.address() as AddressInfo;
      return { url: `${config.tls === null ? 'http' : 'https'}://${family === 'IPv6' ? `[${address}]` : address}:${port}` };
    },
    async stop() {
      draining = true;
      const late = clock.after(config.drainMs, () => deadline.abort(stopping()));
      await locks.endAll('shutdown', null);
      await openRequests.idle(deadline.signal);
      late.cancel();
      // Streams and whatever else is still open ends here.
      deadline.abort(stopping());
      await closeApp(app, clock);
      locks.stop();
      settleLoop.stop();
      await volumes.stop();
      await opened.close();
      clock.stop();
      time.close();
    },
  };
  return gateway;
}

function stopping(): GatewayError {
  return new GatewayError('draining', { detail: 'The gateway is shutting down.', retryAfterMs: 5_000 });
}

/** When ownership leaves no volume open, serving would only confuse: the process ends with one line. */
function assertOwnsSomething(volumes: VolumeSet): void {
  const foreign = volumes.all().find(({ ownedByAnother }) => ownedByAnother);
  if (foreign === undefined || volumes.all().some((volume) => !volume.ownedByAnother)) return;
  throw refuse('volume_unavailable', `No volume belongs to this gateway. ${foreign.name}: ${foreign.state().reason ?? ''}`);
}

function distrustOf(start: { readonly markedAsBackup: boolean }, volumes: VolumeSet): string | null {
  if (start.markedAsBackup) return 'it is a backup that was put back; a rebase is needed';
  const rebase = volumes.all().find(({ verdict }) => verdict !== null && verdict !== 'ok');
  return rebase?.state().reason ?? null;
}
