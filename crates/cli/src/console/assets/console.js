"use strict";
// Everything works without this script. It shows times in the reader's zone, copies commands, and follows what runs.

function localTimes(root) {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const time of root.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    time.title = time.textContent;
    time.textContent = format.format(date);
  }
}

function copyButtons(root) {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    });
  }
}

function checkAll(root) {
  for (const box of root.querySelectorAll("input[data-all]")) {
    const others = root.querySelectorAll(`input[name="${box.dataset.all}"]`);
    box.addEventListener("change", () => others.forEach((other) => { other.checked = box.checked; }));
  }
}

function enhance(root) {
  localTimes(root);
  copyButtons(root);
  checkAll(root);
}

// Replaces the part of the page that changes by what the server shows now.
let running = false;
let again = false;
async function refresh() {
  if (running) { again = true; return; }
  running = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) { location.reload(); return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = page.querySelector("#live");
    const here = document.querySelector("#live");
    if (!now || !here) { location.reload(); return; }
    here.replaceWith(now);
    enhance(now);
    if (!now.dataset.watch) source?.close();
  } catch {
    // The connection is lost for a moment: the next event brings the page up to date.
  } finally {
    running = false;
    if (again) { again = false; setTimeout(refresh, 500); }
  }
}

let source;
function follow() {
  const live = document.querySelector("#live[data-watch]");
  if (!live) return;
  source = new EventSource(live.dataset.watch);
  source.addEventListener("changed", refresh);
  source.addEventListener("progress", (event) => {
    const { sentence, done, total } = JSON.parse(event.data);
    const text = document.querySelector("#sentence");
    const bar = document.querySelector("#progress");
    if (text) text.textContent = sentence;
    if (bar) {
      if (total > 0) { bar.max = total; bar.value = done; } else { bar.removeAttribute("value"); }
    }
  });
}

document.documentElement.classList.add("script");
enhance(document);
follow();
