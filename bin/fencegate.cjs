#!/usr/bin/env node
'use strict';

// CommonJS on purpose: libuv reads the size of its pool once, at its first use, and loading an ES module is a use already.
// A hung mount may take as many threads of the pool as its volume has operations in flight, so there are threads to spare.
const POOL_SIZE_MIN = 32;
const POOL_SIZE_MAX = 1024;
const IN_FLIGHT_PER_VOLUME = 8;
const SPARE = 16;

function fail(line) {
  process.stderr.write(`fencegate: ${line}\n`);
  process.exitCode = 1;
}

/** How many operations all volumes may have in flight. What is wrong with the settings is said by the program itself, later. */
function operationsInFlight() {
  const listed = (process.env.FENCEGATE_VOLUMES ?? '').split(',').length * IN_FLIGHT_PER_VOLUME;
  const file = process.env.FENCEGATE_CONFIG;
  if (!file) return listed;
  try {
    const settings = require('yaml').parse(require('node:fs').readFileSync(file, 'utf8'));
    const volumes = Object.values(settings.volumes ?? {});
    return listed + volumes.reduce((sum, volume) => sum + (Number(volume?.limits?.in_flight) || IN_FLIGHT_PER_VOLUME), 0);
  } catch {
    return listed;
  }
}

/** The first use starts all threads. After that the setting is put back: a command of exec and edit finds in its environment what their caller had. */
function startPool() {
  const { UV_THREADPOOL_SIZE: given } = process.env;
  if (given) return;
  process.env.UV_THREADPOOL_SIZE = String(Math.min(POOL_SIZE_MAX, Math.max(POOL_SIZE_MIN, operationsInFlight() + SPARE)));
  require('node:fs').access('/', () => {});
  if (given === undefined) delete process.env.UV_THREADPOOL_SIZE;
  else process.env.UV_THREADPOOL_SIZE = given;
}

const [major, minor] = process.versions.node.split('.').map(Number);
if (process.platform !== 'linux') {
  fail(`runs on Linux only, this is ${process.platform}`);
} else if (major < 20 || (major === 20 && minor < 19)) {
  fail(`needs Node 20.19 or newer, this is ${process.versions.node}`);
} else {
  startPool();
  import('../dist/main.js').catch((error) => {
    fail(
      error.code === 'ERR_MODULE_NOT_FOUND' && String(error.message).includes('dist/main.js')
        ? 'is not built yet; run npm run build'
        : String(error.stack),
    );
  });
}
