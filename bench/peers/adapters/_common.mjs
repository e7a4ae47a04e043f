// What all adapters for Node share: verbs, clock, gate and score board. It needs Node only.
//
// An adapter is an object given to `run`: name, packageName, settings, persists, and the asynchronous
// functions open(atOnce), close(), prepare(), empty(), send(kind, value), sendMany(kind, values), left()
// and work(slots, gate), which mean what they mean in `_async.py`. The packages are looked for in
// BENCH_MODULES, in the working directory, and beside the program `node` itself, which is enough where
// the environment has its own.
//
// process.hrtime.bigint() is CLOCK_MONOTONIC, so times agree with those of the other language.

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const BATCH = 500;
const PACED_AT_ONCE = 20;
const PAUSE_MS = 20;
const WARM_UPS = 3;
const SLOT_BYTES = 64;

const now = process.hrtime.bigint;
const secondsSince = (start) => Number(now() - start) / 1e9;
const range = (from, to) => Array.from({ length: to - from }, (_, index) => from + index);

export const postgres = () => process.env.BENCH_POSTGRES;

function find(name) {
  const paths = [process.env.BENCH_MODULES, process.cwd(), process.execPath].filter(Boolean);
  return createRequire(import.meta.url).resolve(name, { paths });
}

/** The module of an installed package. */
export const load = (name) => import(pathToFileURL(find(name)).href);

function versionOf(name) {
  let folder = path.dirname(find(name));
  for (;;) {
    const file = path.join(folder, "package.json");
    const found = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")) : {};
    if (found.name === name) return found.version;
    folder = path.dirname(folder);
  }
}

/**
 * Where handlers leave what they saw. Node has no mmap: the count and the times are kept in memory and
 * written as one piece of 24 bytes at most once a millisecond, so what stands in the file is complete but
 * may be a millisecond old.
 */
class Board {
  cells = new BigUint64Array(3);
  waiting = false;

  get file() {
    const file = fs.openSync(process.env.BENCH_BOARD, "r+");
    Object.defineProperty(this, "file", { value: file });
    process.once("exit", () => this.write());
    return file;
  }

  get lines() {
    const lines = fs.openSync(linesPath(), "a", 0o600);
    Object.defineProperty(this, "lines", { value: lines });
    return lines;
  }

  write() {
    this.waiting = false;
    fs.writeSync(this.file, this.cells, 0, 24, Number(process.env.BENCH_SLOT ?? 0) * SLOT_BYTES);
  }

  noop() {
    const { cells } = this;
    cells[2] = now();
    if (cells[0] === 0n) cells[1] = cells[2];
    cells[0] += 1n;
    if (!this.waiting) {
      this.waiting = true;
      setTimeout(() => this.write(), 1);
    }
  }

  /** 0 is a warm-up and is not counted. */
  stamp(sentNs) {
    fs.writeSync(this.lines, sentNs === 0n ? "warm\n" : `stamp ${now() - sentNs}\n`);
  }

  slow(number) {
    fs.writeSync(this.lines, `slow ${number} ${now()} ${process.pid}\n`);
  }
}

const linesPath = () => `${process.env.BENCH_BOARD}.lines`;
const noted = () => (fs.existsSync(linesPath()) ? fs.statSync(linesPath()).size : 0);

export const board = new Board();

/** What the handler of each kind does; times travel as text because they may exceed a JSON number. */
export const handlers = {
  noop: async () => board.noop(),
  stamp: async (value) => board.stamp(BigInt(value)),
  slow: async (value) => {
    board.slow(value);
    await sleep(1000);
  },
};

/** Where a worker waits until the clock starts. */
class Gate {
  constructor(say) {
    this.say = say;
  }

  /** Say that the worker is ready; return at "go" what calls back at SIGTERM or when stdin is closed. */
  async ready() {
    const stopped = new Promise((stop) => {
      process.once("SIGTERM", stop);
      process.stdin.once("end", stop);
    });
    this.say({ ready: true });
    const started = new Promise((go) => process.stdin.once("data", () => go(true)));
    if (!(await Promise.race([started, stopped.then(() => false)]))) process.exit(0);
    return { untilStopped: () => stopped };
  }
}

/** Say that everything before the measured part is done; return when the harness has read its counters. */
async function clock() {
  fs.writeSync(1, `${JSON.stringify({ ready: true })}\n`);
  await new Promise((go) => process.stdin.once("data", go));
  process.stdin.pause();
}

async function atOnce(count, jobs, each) {
  let next = 0;
  const lane = async () => {
    while (next < jobs) await each(next++);
  };
  await Promise.all(Array.from({ length: count }, lane));
}

const enqueue = {
  async bulk(adapter, jobs) {
    const numbers = range(0, jobs);
    await adapter.sendMany("noop", [0]);
    await adapter.empty();
    await clock();
    const start = now();
    await adapter.sendMany("noop", numbers);
    return secondsSince(start);
  },

  async single(adapter, jobs, count) {
    await atOnce(count, count, () => adapter.send("noop", 0));
    await adapter.empty();
    await clock();
    const start = now();
    await atOnce(count, jobs, (number) => adapter.send("noop", number));
    return secondsSince(start);
  },

  async paced(adapter, jobs, rate) {
    await clock();
    const start = now();
    if (rate > 0) {
      await atOnce(PACED_AT_ONCE, jobs, async (number) => {
        const early = number / rate - secondsSince(start);
        if (early > 0) await sleep(early * 1000);
        await adapter.send("noop", number);
      });
    } else {
      for (let from = 0; from < jobs; from += BATCH) {
        await adapter.sendMany("noop", range(from, Math.min(from + BATCH, jobs)));
      }
    }
    return secondsSince(start);
  },

  async slow(adapter, jobs) {
    const start = now();
    await adapter.sendMany("slow", range(0, jobs));
    return secondsSince(start);
  },
};

async function latency(adapter, jobs) {
  for (let number = 0; number < WARM_UPS + jobs; number++) {
    if (number === WARM_UPS) await clock();
    const seen = noted();
    await adapter.send("stamp", String(number < WARM_UPS ? 0n : now()));
    while (noted() === seen) await sleep(1);
    await sleep(PAUSE_MS);
  }
}

async function connected(adapter, words, say) {
  const [verb, ...rest] = words;
  const numbers = rest.slice(1).map(Number);
  if (verb === "enqueue" && rest[0] in enqueue) {
    say({ seconds: await enqueue[rest[0]](adapter, ...numbers) });
  } else if (verb === "latency") {
    await latency(adapter, Number(rest[0]));
    say({});
  } else if (verb === "left" && rest[0] === "--watch") {
    for await (const _ of readline.createInterface({ input: process.stdin })) {
      say({ left: await adapter.left() });
    }
  } else if (verb === "left") {
    say({ left: await adapter.left() });
  } else {
    throw new Error(`not a verb: ${words.join(" ")}`);
  }
}

/** Do what the command line asks for. */
export async function run(adapter) {
  const words = process.argv.slice(2);
  const say = (answer) => fs.writeSync(1, `${JSON.stringify(answer)}\n`);
  // Whatever a system prints goes to stderr; stdout is for the answers.
  process.stdout.write = process.stderr.write.bind(process.stderr);
  if (words[0] === "about") {
    const { name, settings, persists } = adapter;
    const version = versionOf(adapter.packageName);
    say({ name, version, language: "Node", store: "PostgreSQL", settings, persists });
  } else if (words[0] === "prepare") {
    await adapter.prepare();
    say({});
  } else if (words[0] === "work") {
    await adapter.work(Number(words[1]), new Gate(say));
  } else {
    await adapter.open(words[1] === "single" ? Number(words[3]) : PACED_AT_ONCE);
    await connected(adapter, words, say);
    await adapter.close();
  }
  process.exit(0);
}
