// pg-boss, with batches, bursts while batches come full, and LISTEN/NOTIFY. Heartbeats are on, so that the
// jobs of a dead worker are found soon.

import { handlers, load, postgres, run } from "./_common.mjs";

const { default: pg } = await load("pg");
const { PgBoss } = await load("pg-boss");

const QUEUE = "bench";
const HEARTBEAT = 10;
const WATCH = 5;
const LOCAL_CONCURRENCY = 4;
const BATCH_SIZE = 1000;

async function boss(options) {
  const made = new PgBoss({ connectionString: postgres(), schedule: false, ...options });
  made.on("error", console.error);
  return made.start();
}

let sender, connection;

await run({
  name: "pg-boss",
  packageName: "pg-boss",
  settings:
    `batchSize ${BATCH_SIZE}, burstWhenBatchFull, localConcurrency ${LOCAL_CONCURRENCY}, LISTEN/NOTIFY, ` +
    `heartbeatSeconds ${HEARTBEAT}, supervised every ${WATCH} s; all jobs in one bulk call`,
  persists: "the job's row, overwritten by its last state, kept 7 days",

  async prepare() {
    const client = new pg.Client(postgres());
    await client.connect();
    await client.query("drop schema if exists pgboss cascade");
    await client.end();
    const made = await boss({ supervise: false });
    await made.createQueue(QUEUE, { notify: true, heartbeatSeconds: HEARTBEAT });
    await made.stop({ graceful: false });
  },

  async open(atOnce) {
    connection = new pg.Client(postgres());
    await connection.connect();
    sender = await boss({ supervise: false, migrate: false, max: atOnce });
  },

  async close() {
    await sender.stop({ graceful: false });
    await connection.end();
  },

  empty: () => sender.deleteAllJobs(QUEUE),

  send: (kind, value) => sender.send(QUEUE, { kind, value }),

  sendMany: (kind, values) => sender.insert(QUEUE, values.map((value) => ({ data: { kind, value } }))),

  async left() {
    const { rows } = await connection.query(
      "select count(*)::int as left from pgboss.job where state in ('created', 'retry', 'active')",
    );
    return rows[0].left;
  },

  async work(_slots, gate) {
    const worker = await boss({
      useListenNotify: true,
      migrate: false,
      superviseIntervalSeconds: WATCH,
      monitorIntervalSeconds: WATCH,
    });
    const { untilStopped } = await gate.ready();
    await worker.work(
      QUEUE,
      {
        batchSize: BATCH_SIZE,
        localConcurrency: LOCAL_CONCURRENCY,
        burstWhenBatchFull: true,
        pollingIntervalSeconds: 0.5,
      },
      (jobs) => Promise.all(jobs.map(({ data }) => handlers[data.kind](data.value))),
    );
    await untilStopped();
    await worker.stop({ graceful: true });
  },
});
