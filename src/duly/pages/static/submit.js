/** The page on which jobs are asked for. */

import "./page.js";
import { analysis } from "./analysis_form.js";
import { asking, say, the } from "./dom.js";
import { t } from "./i18n.js";

const kind = the("job-type");
const payload = the("payload");
let filled = payload.value;

/** The JSON object in the field; null, and a word about it, if there is none. */
function object() {
  try {
    const value = JSON.parse(payload.value);
    if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error(payload.value.slice(0, 40));
    return value;
  } catch (error) {
    say(the("other-problem"), t("other.no_object", { reason: error.message }));
    payload.focus();
    return null;
  }
}

async function other() {
  if (!kind.reportValidity()) return null;
  const value = object();
  if (value === null) return null;
  const request = { job_type: kind.value.trim(), payload: value };
  const subject = the("subject").value.trim();
  return subject ? { ...request, subject_id: subject } : request;
}

/** An example of the payload, as long as nothing was written. */
function fill() {
  const option = [...the("job-types").options].find((one) => one.value === kind.value);
  if (option && payload.value === filled) {
    filled = JSON.stringify(JSON.parse(option.dataset.example), null, 2);
    payload.value = filled;
  }
}

kind.addEventListener("input", fill);
asking(the("other-form"), the("other-problem"), other);
if (the("analysis")) analysis(the("analysis"));
