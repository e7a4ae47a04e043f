/** What was asked for is remembered in this tab, so that it can be asked for again; gone when the tab is closed. */

const PREFIX = "duly.request.";

/** @param {string} jobId @param {object} request the body that was sent */
export function remember(jobId, request) {
  try {
    sessionStorage.setItem(PREFIX + jobId, JSON.stringify(request));
  } catch {
    // Full, or switched off: then it is not offered again.
  }
}

/** @param {string} jobId @returns {object | null} */
export function recall(jobId) {
  const kept = sessionStorage.getItem(PREFIX + jobId);
  return kept && JSON.parse(kept);
}

/** Forget everything: the next reader may be somebody else. */
export function forget() {
  for (const key of Object.keys(sessionStorage)) {
    if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
  }
}
