// graphile-worker, with the settings of its own page on performance: a local queue of 500 and batched
// completions. A job that is done is deleted.

import { handlers, load, postgres, run } from "./_common.mjs";

const { default: pg } = await load("pg");
const { makeWorkerUtils, run: runWorker, runMigrations, Logger } = await load("graphile-worker");

const LOCAL_QUEUE = 500;
const MAX_CONCURRENT = 100;

const quiet = new Logger(() => (level, message) => level === "error" && console.error(message));
const tasks = Object.fromEntries(
  Object.entries(handlers).map(([kind, handler]) => [kind, (payload) => handler(payload.value)]),
);

function pool(max) {
  const made = new pg.Pool({ connectionString: postgres(), max });
  made.on("error", console.error);
  made.on("connect", (client) => client.on("error", console.error));
  return made;
}

let connections, utils;

await run({
  name: "graphile-worker",
  packageName: "graphile-worker",
  settings:
    `localQueue ${LOCAL_QUEUE}, completeJobBatchDelay 0, failJobBatchDelay 0, ` +
    `concurrentJobs = slots up to ${MAX_CONCURRENT}; all jobs in one bulk call`,
  persists: "nothing: a job that is done is deleted; jobs of a dead worker stay locked for 4 hours",

  async prepare() {
    const pgPool = pool(2);
    await pgPool.query("drop schema if exists graphile_worker cascade");
    await runMigrations({ pgPool, logger: quiet });
    await pgPool.end();
  },

  async open(atOnce) {
    connections = pool(atOnce);
    utils = await makeWorkerUtils({ pgPool: connections, logger: quiet });
  },

  async close() {
    await utils.release();
    await connections.end();
  },

  empty: () => connections.query("truncate graphile_worker._private_jobs"),

  send: (kind, value) => utils.addJob(kind, { value }),

  sendMany: (kind, values) => utils.addJobs(values.map((value) => ({ identifier: kind, payload: { value } }))),

  async left() {
    const { rows } = await connections.query("select count(*)::int as left from graphile_worker.jobs");
    return rows[0].left;
  },

  async work(slots, gate) {
    const pgPool = pool(10);
    await pgPool.query("select 1");
    const { untilStopped } = await gate.ready();
    const runner = await runWorker({
      pgPool,
      logger: quiet,
      noHandleSignals: true,
      taskList: tasks,
      preset: {
        worker: {
          concurrentJobs: Math.min(slots, MAX_CONCURRENT),
          localQueue: { size: LOCAL_QUEUE },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
        },
      },
    });
    await untilStopped();
    await runner.stop();
    await pgPool.end();
  },
});
