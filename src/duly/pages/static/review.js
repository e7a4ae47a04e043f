/** Documents that need review: each gets a type, and leaves the list. */

import "./page.js";
import { call } from "./api.js";
import { typeName } from "./document_type.js";
import { onSubmit, setText } from "./dom.js";
import { t } from "./i18n.js";

for (const item of document.querySelectorAll(".review")) {
  const form = item.querySelector("form");
  onSubmit(form, async () => {
    const type = form.querySelector("select").value;
    await call("PUT", `/v1/documents/${item.dataset.document}/doc_type`, { json: { doc_type: type } });
    for (const part of item.querySelectorAll("p:not([role]), ul")) part.remove();
    form.hidden = true;
    setText(item.querySelector("[role=status]"), t("review.saved", { type: typeName(type) }));
  });
}
