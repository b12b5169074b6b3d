'use strict';

/**
 * Which way imports point: main -> cli, compose -> adapters -> gateway, locks -> domain. Adapters do not know each other; only the
 * composition root and the command line see several of them.
 */
const ADAPTERS = ['config', 'dashboard', 'grpc', 'http', 'journal', 'observability', 'storage'];
const FRAMEWORKS = '^(fastify|@fastify/|@grpc/|grpc-|better-sqlite3|pino|prom-client|commander|undici)';

/** A room may import its own files and those of the rooms named. */
const room = (name, ...others) => ({
  name: `${name}-imports-only-${['itself', ...others].join('-and-')}`,
  severity: 'error',
  from: { path: `^src/${name}/` },
  to: { path: '^src/', pathNot: [name, ...others].map((other) => `^src/${other}/`) },
});

module.exports = {
  forbidden: [
    room('domain'),
    room('gateway', 'domain'),
    room('locks', 'domain'),
    room('doctor', 'domain', 'locks'),
    room('client'),
    room('http', 'domain', 'gateway'),
    room('grpc', 'domain', 'gateway'),
    {
      ...room('zookeeper', 'domain'),
      to: { path: '^src/', pathNot: ['^src/zookeeper/', '^src/domain/', '^src/locks/zookeeper/zk-client[.]ts$'] },
    },
    ...ADAPTERS.filter((name) => name !== 'http' && name !== 'grpc').map((name) => room(name, 'domain')),
    {
      name: 'core-knows-no-framework-and-no-io',
      comment: 'Time, randomness, files and sockets come in as arguments.',
      severity: 'error',
      from: { path: '^src/(domain|gateway|locks|doctor)/' },
      to: { path: [FRAMEWORKS, '^(node:)?(fs|net|http|https|child_process|worker_threads|os|dns|timers)($|/)'] },
    },
    {
      name: 'only-the-root-composes',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(main|compose)[.]ts$|^src/(cli|composition)/' },
      to: { path: '^src/(main|compose)[.]ts$|^src/(cli|composition)/' },
    },
    {
      name: 'no-cycles',
      comment: 'Types that name each other are one idea in two files; code that needs each other is not.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    { name: 'product-does-not-import-tests', severity: 'error', from: { path: '^src/' }, to: { path: '^(test|bench)/' } },
    {
      name: 'no-development-packages-in-the-product',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
    { name: 'everything-resolves', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'require', 'node', 'default', 'types'] },
  },
};
