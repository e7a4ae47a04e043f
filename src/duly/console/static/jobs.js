/** Bulk actions: count the selected jobs; selecting one switches from all matching jobs to the selected ones. */

const form = document.querySelector("[data-many]");

function showCount() {
  const count = form?.querySelector("[data-picked]");
  if (!count) return;
  const n = form.querySelectorAll("input[name=job]:checked").length;
  if (count.textContent !== String(n)) count.textContent = String(n);
}

document.addEventListener("change", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || box.name !== "job") return;
  const these = form?.querySelector("input[name=scope][value=these]");
  if (box.checked && these instanceof HTMLInputElement) these.checked = true;
  showCount();
});
new MutationObserver(showCount).observe(document.getElementById("live") ?? document.body, { childList: true, subtree: true });
showCount();
