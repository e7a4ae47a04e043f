/** Sending files: small ones at once, large ones in parts, which go on where they were after a break. */

import { call, Problem } from "./api.js";
import { sha256 } from "./sha256.js";

const UPLOADS = "/v1/documents/uploads";
const TRIES = 5;
const PAUSE = 1000;

/** Whether it may go better later. @param {unknown} error */
const passing = (error) => error instanceof Problem && (error.status === 0 || error.status === 429 || error.status >= 500);

/** Ask again if it may go better then; for what may be asked twice. @param {() => Promise<Response>} ask */
async function patiently(ask) {
  for (let n = 1; ; n += 1) {
    try {
      return await ask();
    } catch (error) {
      if (n === TRIES || !passing(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, n * PAUSE));
    }
  }
}

/** What became of it. @param {Response} answer */
async function filed(answer) {
  const { document } = await answer.json();
  return { documentId: document.document_id, isNew: answer.status === 201 };
}

/** @typedef {{node_id?: string | null, document_id?: string}} Place where it goes, or what it is a version of */

/** @param {File} file @param {Place} place */
async function whole(file, place) {
  const form = new FormData();
  // On its own: what browsers write as the name of the file is not always its name.
  form.set("name", file.name);
  for (const [field, id] of Object.entries(place)) if (id) form.set(field, id);
  form.set("file", file);
  return filed(await call("POST", "/v1/documents", { body: form }));
}

/** The parts that are missing. @param {File} file @param {any} upload */
async function send(file, upload, report) {
  const headers = { "content-type": "application/octet-stream" };
  for (const [n, part] of upload.missing.entries()) {
    report("upload.sending", (upload.received.length + n) / upload.parts);
    const begin = (part - 1) * upload.part_size;
    const body = file.slice(begin, begin + upload.part_size);
    await patiently(() => call("PUT", `${UPLOADS}/${upload.upload_id}/parts/${part}`, { body, headers }));
  }
}

/** @param {File} file @param {Place} place */
async function inParts(file, place, report) {
  report("upload.hashing", 0);
  const hash = await sha256(file, (share) => report("upload.hashing", share));
  const begun = await patiently(() => call("POST", UPLOADS, { json: { sha256: hash, size: file.size } }));
  const upload = await begun.json();
  if (!upload.upload_id) return { documentId: upload.document_id, isNew: false };
  await send(file, upload, report);
  report("upload.joining", 1);
  const json = { name: file.name, ...place };
  return filed(await call("POST", `${UPLOADS}/${upload.upload_id}/finish`, { json }));
}

/**
 * Have a file filed.
 * @param {File} file
 * @param {{whole: number, node_id?: string | null, document_id?: string}} limits up to which size it is sent at once,
 *   and where it goes, or which document it is a new version of
 * @param {(key: string, share?: number) => void} report what happens, and how far it is if that is known
 * @returns {Promise<{documentId: string, isNew: boolean}>}
 */
export async function upload(file, limits, report) {
  const place = limits.document_id ? { document_id: limits.document_id } : { node_id: limits.node_id };
  if (file.size > limits.whole) return inParts(file, place, report);
  report("upload.sending");
  return whole(file, place);
}
