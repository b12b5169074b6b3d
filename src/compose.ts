import type { Gateway } from './cli/serve.ts';
import { coordinationOf } from './composition/coordination.ts';
import { grpcOf } from './composition/grpc.ts';
import { httpSettings } from './composition/http-settings.ts';
import { lifecycle } from './composition/lifecycle.ts';
import { observeRequests } from './composition/observe-requests.ts';
import { Stopping } from './composition/stopping.ts';
import { tellHead, tellKeyedPart } from './composition/tell-audit-chain.ts';
import { volumesOf } from './composition/volumes.ts';
import type { Authenticator } from './config/authenticate.ts';
import type { Config } from './config/config.ts';
import { readAuditKeys, readSigningKeys } from './config/secret-files.ts';
import { Doctor } from './doctor/doctor.ts';
import { RefusalWindow } from './doctor/refusal-window.ts';
import { noSteps, type Steps } from './domain/steps.ts';
import { createAdministration } from './gateway/administration.ts';
import { CommitMtimes } from './gateway/commit-mtimes.ts';
import { CommittedDigests } from './gateway/committed-digests.ts';
import { Floors } from './gateway/floors.ts';
import { createHealth, distrustOf, readinessOf } from './gateway/health.ts';
import { RunningKeys } from './gateway/idempotency.ts';
import { notingIssuedTokens } from './gateway/issued-tokens.ts';
import { ResourceMutex } from './gateway/resource-mutex.ts';
import { createSettleLoop } from './gateway/settle-loop.ts';
import { StagedQuota } from './gateway/staged-quota.ts';
import { createWriter } from './gateway/writer.ts';
import { buildApp } from './http/app.ts';
import { statusOf } from './http/status.ts';
import { openJournal } from './journal/open-journal.ts';
import { createLockService } from './locks/create-lock-service.ts';
import { gatewayMetrics } from './observability/gateway-metrics.ts';
import type { Logger } from './observability/logger.ts';
import { countingRefusals, measuredJournal, measuredLocks } from './observability/measured-ports.ts';
import { linuxTime, SystemClock } from './observability/system-clock.ts';
import { systemRandom as random } from './observability/system-random.ts';

export interface Parts {
  readonly logger: Logger;
  readonly authenticator: Authenticator;
}

/** Builds every part of a gateway: the whole wiring. `overrides` are for tests of the protocol's steps. */
export async function compose(config: Config, { logger, authenticator }: Parts, overrides: { readonly steps?: Steps } = {}): Promise<Gateway> {
  const time = linuxTime();
  const clock = new SystemClock(time);
  const { dataDir: dataDirectory, takeoverAfterMs, audit: retention } = config;
  const opened = await openJournal({ dataDirectory, clock, random, takeoverAfterMs, auditKeys: readAuditKeys(config), retention });
  const { start, takeOver } = opened;
  tellKeyedPart(opened.keyedPart, logger);
  tellHead(clock, opened.journal, logger);
  const readiness = () => volumes.all().map((volume) => readinessOf(volume));
  const metrics = gatewayMetrics({
    coordinator: () => coordinator(),
    volumes: readiness,
    lanes: () => volumes.lanes(),
    locks: () => locks.figures(),
    journal: () => opened.stats(),
  });
  const refusalWindow = new RefusalWindow(clock);
  const refusals = refusalWindow.hearing(countingRefusals(opened.refusals, metrics));
  const floors = new Floors(
    start,
    config.volumes.map(({ name }) => name),
  );
  const journal = notingIssuedTokens(measuredJournal(opened.journal, metrics, clock), floors, (volume, token) =>
    volumes.get(volume).noteIssued(token),
  );

  const mtimes = new CommitMtimes(start);
  const predecessorExited = takeOver?.seenToExit ?? true;
  const onCeiling = (ceiling: bigint) => locks.raiseAbove(ceiling);
  const coordination = await coordinationOf({ config, clock, random, start, journal, logger, metrics });
  const { titles } = coordination;
  const volumes = volumesOf({ config, clock, random, start, journal, mtimes, statusOf, titles, predecessorExited, logger, metrics, onCeiling });
  const locks = createLockService({
    coordination: coordination.make,
    clock,
    random,
    journal,
    refusals,
    ceilings: volumes,
    statusOf,
    policy: (volume) => volumes.policy(volume),
    fenceLevel: (volume) => (volumes.policy(volume).path === null ? null : volumes.get(volume).fenceLevel),
    gatewayUuid: start.gatewayUuid,
    signingKeys: readSigningKeys(config),
  });
  const coordinator = () => locks.readiness();

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
    readiness,
    lanes: () => volumes.lanes(),
    locks: locks.service,
    conditions: () => locks.conditions(),
    endLease: (caller, leaseRef, reason) => locks.endLease(caller, leaseRef, reason),
    waitFor: () => locks.waitFor(),
    coordinator,
    nodes: () => locks.nodes(),
    removeOrphan: (node) => locks.removeOrphan(node),
    unsettled: settleLoop,
  });
  const breakLock: typeof locks.breakLock = (caller, request) => locks.breakLock(caller, request);
  const rebase = { start, journal, clock, volumes: volumes.all(), locks };
  const stopping = new Stopping();
  const { isDraining, deadline } = stopping;
  const faces = {
    volumes,
    locks: measuredLocks(locks.service, metrics, clock),
    events: locks.events,
    refusals,
    clock,
    random,
    log: logger,
    health: createHealth({ volumes, journal, coordinator, isDraining, distrust: () => distrustOf(start, volumes.all()) }),
    isDraining,
    deadline,
  };
  const app = buildApp({
    ...faces,
    writer,
    journal,
    digests,
    administration: createAdministration({ volumes, journal, start, breakLock, rebase, doctor }),
    authenticate: ({ authorization }, peer) => authenticator.authenticate({ authorization, certificateName: peer?.commonName ?? null }),
    metricsText: () => metrics.text(),
    settings: httpSettings(config, authenticator),
  });
  observeRequests(app, metrics);
  const grpc = await grpcOf({ config, authenticator, app, metrics }, faces);

  const close = async () => {
    await opened.close();
    clock.stop();
    time.close();
  };
  return lifecycle({
    coordination,
    config,
    clock,
    journal,
    start,
    tookOver: takeOver !== null,
    volumes,
    locks,
    settleLoop,
    app,
    grpc,
    stopping,
    close,
  });
}
