/** The bar for many jobs: how many are selected, and selecting one means those and not all. */

const form = document.querySelector("[data-many]");

function tell() {
  const said = form?.querySelector("[data-picked]");
  if (!said) return;
  const n = form.querySelectorAll("input[name=job]:checked").length;
  if (said.textContent !== String(n)) said.textContent = String(n);
}

document.addEventListener("change", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || box.name !== "job") return;
  const these = form?.querySelector("input[name=scope][value=these]");
  if (box.checked && these instanceof HTMLInputElement) these.checked = true;
  tell();
});
new MutationObserver(tell).observe(document.getElementById("live") ?? document.body, { childList: true, subtree: true });
tell();
