/** The page that submits jobs. */

import "./page.js";
import { analysis } from "./analysis_form.js";
import { byId, setText, submitForm } from "./dom.js";
import { t } from "./i18n.js";

const kind = byId("job-type");
const payload = byId("payload");
let filled = payload.value;

/** Parse the JSON object of the payload; show an error and return null if it is invalid. */
function object() {
  try {
    const value = JSON.parse(payload.value);
    if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error(payload.value.slice(0, 40));
    return value;
  } catch (error) {
    setText(byId("other-problem"), t("other.no_object", { reason: error.message }));
    payload.focus();
    return null;
  }
}

async function other() {
  if (!kind.reportValidity()) return null;
  const value = object();
  if (value === null) return null;
  const request = { job_type: kind.value.trim(), payload: value };
  const subject = byId("subject").value.trim();
  return subject ? { ...request, subject_id: subject } : request;
}

/** Fill in an example of the payload, unless it was edited. */
function fill() {
  const option = [...byId("job-types").options].find((one) => one.value === kind.value);
  if (option && payload.value === filled) {
    filled = JSON.stringify(JSON.parse(option.dataset.example), null, 2);
    payload.value = filled;
  }
}

kind.addEventListener("input", fill);
submitForm(byId("other-form"), byId("other-problem"), other);
if (byId("analysis")) analysis(byId("analysis"));
