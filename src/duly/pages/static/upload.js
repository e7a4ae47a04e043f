/** File uploads: small files in one request, large ones in parts that can be resumed. */

import { call, Problem } from "./api.js";

/** SHA-256 (FIPS 180-4) of a file in pieces: crypto.subtle needs the whole file in memory. */

const PIECE = 2 ** 20;
const PRIMES = [];
for (let n = 2; PRIMES.length < 64; n += 1) if (PRIMES.every((prime) => n % prime)) PRIMES.push(n);
/** The first bits behind the point of a root. @param {number} root */
const bits = (root) => ((root % 1) * 2 ** 32) | 0;
const START = Int32Array.from(PRIMES.slice(0, 8), (prime) => bits(Math.sqrt(prime)));
const ROUNDS = Int32Array.from(PRIMES, (prime) => bits(Math.cbrt(prime)));
const turn = (word, by) => (word >>> by) | (word << (32 - by));
const words = new Int32Array(64);

/** The sixteen words of a block, and those that are made of them. @param {DataView} view @param {number} at */
function spread(view, at) {
  for (let n = 0; n < 16; n += 1) words[n] = view.getInt32(at + 4 * n);
  for (let n = 16; n < 64; n += 1) {
    const early = words[n - 15];
    const late = words[n - 2];
    const first = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
    const second = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
    words[n] = words[n - 16] + first + words[n - 7] + second;
  }
}

/** Take bytes in: whole blocks of 64. @param {Int32Array} state @param {ArrayBuffer} buffer */
function take(state, buffer) {
  const view = new DataView(buffer);
  for (let at = 0; at < buffer.byteLength; at += 64) {
    spread(view, at);
    let [a, b, c, d, e, f, g, h] = state;
    for (let n = 0; n < 64; n += 1) {
      const chosen = (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g));
      const one = (h + chosen + ROUNDS[n] + words[n]) | 0;
      const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = (d + one) | 0;
      d = c;
      c = b;
      b = a;
      a = (one + two) | 0;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
  }
}

/** The last bytes, filled up: a bit, zeros, and how many bits the file has. @param {ArrayBuffer} rest @param {number} size */
function filled(rest, size) {
  const whole = new Uint8Array(64 * Math.ceil((rest.byteLength + 9) / 64));
  whole.set(new Uint8Array(rest));
  whole[rest.byteLength] = 0x80;
  new DataView(whole.buffer).setBigUint64(whole.length - 8, BigInt(size) * 8n);
  return whole.buffer;
}

/**
 * @param {Blob} file
 * @param {(share: number) => void} report how far it is, from 0 to 1
 * @returns {Promise<string>} as hex digits
 */
export async function sha256(file, report) {
  const state = START.slice();
  let at = 0;
  for (; at + PIECE <= file.size; at += PIECE) {
    take(state, await file.slice(at, at + PIECE).arrayBuffer());
    report((at + PIECE) / file.size);
  }
  take(state, filled(await file.slice(at).arrayBuffer(), file.size));
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

const UPLOADS = "/v1/documents/uploads";
const MAX_ATTEMPTS = 5;
const RETRY_DELAY = 1000;

/** Whether an error is temporary. @param {unknown} error */
const isTemporary = (error) => error instanceof Problem && (error.status === 0 || error.status === 429 || error.status >= 500);

/** Retry an idempotent request after temporary errors. @param {() => Promise<Response>} send */
async function withRetries(send) {
  for (let n = 1; ; n += 1) {
    try {
      return await send();
    } catch (error) {
      if (n === MAX_ATTEMPTS || !isTemporary(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, n * RETRY_DELAY));
    }
  }
}

/** The uploaded document. @param {Response} answer */
async function filed(answer) {
  const { document } = await answer.json();
  return { documentId: document.document_id, isNew: answer.status === 201 };
}

/** @typedef {{node_id?: string | null, document_id?: string}} Target the folder, or the document that it is a version of */

/** @param {File} file @param {Target} target */
async function whole(file, target) {
  const form = new FormData();
  // Separately: browsers change some characters of the file name of a part.
  form.set("name", file.name);
  for (const [field, id] of Object.entries(target)) if (id) form.set(field, id);
  form.set("file", file);
  return filed(await call("POST", "/v1/documents", { body: form }));
}

/** Send the missing parts. @param {File} file @param {any} upload */
async function send(file, upload, report) {
  const headers = { "content-type": "application/octet-stream" };
  for (const [n, part] of upload.missing.entries()) {
    report("upload.sending", (upload.received.length + n) / upload.parts);
    const begin = (part - 1) * upload.part_size;
    const body = file.slice(begin, begin + upload.part_size);
    await withRetries(() => call("PUT", `${UPLOADS}/${upload.upload_id}/parts/${part}`, { body, headers }));
  }
}

/** @param {File} file @param {Target} target */
async function inParts(file, target, report) {
  report("upload.hashing", 0);
  const hash = await sha256(file, (share) => report("upload.hashing", share));
  const begun = await withRetries(() => call("POST", UPLOADS, { json: { sha256: hash, size: file.size } }));
  const upload = await begun.json();
  if (!upload.upload_id) return { documentId: upload.document_id, isNew: false };
  await send(file, upload, report);
  report("upload.joining", 1);
  const json = { name: file.name, ...target };
  return filed(await call("POST", `${UPLOADS}/${upload.upload_id}/finish`, { json }));
}

/**
 * Upload a file.
 * @param {File} file
 * @param {{whole: number, node_id?: string | null, document_id?: string}} limits the size up to which one request is
 *   sent, and the folder, or the document that it is a new version of
 * @param {(key: string, share?: number) => void} report the message id and the progress, if known
 * @returns {Promise<{documentId: string, isNew: boolean}>}
 */
export async function upload(file, limits, report) {
  const target = limits.document_id ? { document_id: limits.document_id } : { node_id: limits.node_id };
  if (file.size > limits.whole) return inParts(file, target, report);
  report("upload.sending");
  return whole(file, target);
}
