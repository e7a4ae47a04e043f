/** A place that takes files: chosen in its field, or dropped on it. */

/**
 * @param {HTMLElement} zone
 * @param {HTMLInputElement} input
 * @param {(files: FileList) => void} choose
 */
export function takingFiles(zone, input, choose) {
  input.addEventListener("change", () => {
    choose(input.files);
    input.value = "";
  });
  for (const event of ["dragover", "dragleave", "drop"]) {
    zone.addEventListener(event, (dragged) => {
      dragged.preventDefault();
      zone.classList.toggle("over", event === "dragover");
    });
  }
  zone.addEventListener("drop", (dropped) => choose(dropped.dataTransfer.files));
}
