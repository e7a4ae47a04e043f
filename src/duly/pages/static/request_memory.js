/** The requests of this tab, so that a job can be submitted again; the session storage ends with the tab. */

const PREFIX = "duly.request.";

/** @param {string} jobId @param {object} request the body that was sent */
export function rememberRequest(jobId, request) {
  try {
    sessionStorage.setItem(PREFIX + jobId, JSON.stringify(request));
  } catch {
    // Storage is full or disabled: the job cannot be submitted again from here.
  }
}

/** @param {string} jobId @returns {object | null} */
export function recallRequest(jobId) {
  const stored = sessionStorage.getItem(PREFIX + jobId);
  return stored && JSON.parse(stored);
}

/** Forget all requests at sign-out. */
export function forgetRequests() {
  for (const key of Object.keys(sessionStorage)) {
    if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
  }
}
