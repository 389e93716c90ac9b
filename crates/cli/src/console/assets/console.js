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

function enhance(root) {
  localTimes(root);
  copyButtons(root);
}

// What the reader has opened and where they are, so that an update of the page takes nothing away from them.
function summaries(root) {
  const seen = new Map();
  return [...root.querySelectorAll("details")].map((details) => {
    const text = details.querySelector("summary")?.textContent ?? "";
    seen.set(text, (seen.get(text) ?? 0) + 1);
    return [`${text} ${seen.get(text)}`, details];
  });
}

function focusable(root) {
  return [...root.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")];
}

function sameElement(one, other) {
  const attributes = ["id", "name", "value", "href", "aria-label"];
  return one.tagName === other.tagName && attributes.every((name) => one.getAttribute(name) === other.getAttribute(name))
    && (one.tagName !== "SUMMARY" || one.textContent === other.textContent);
}

function exchange(here, now) {
  const open = new Map(summaries(here).map(([key, details]) => [key, details.open]));
  const active = here.contains(document.activeElement) ? document.activeElement : null;
  const alike = active ? focusable(here).filter((one) => sameElement(one, active)).indexOf(active) : -1;
  here.replaceWith(now);
  enhance(now);
  for (const [key, details] of summaries(now)) if (open.has(key)) details.open = open.get(key);
  if (active) focusable(now).filter((one) => sameElement(one, active))[alike]?.focus({ preventScroll: true });
}

// Replaces the part of the page that changes by what the server shows now.
let running = false;
let again = false;
async function refresh() {
  if (running) { again = true; return; }
  running = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok) {
      // Signed out, or gone: the answer says which.
      source?.close();
      document.querySelector("main").replaceWith(page.querySelector("main"));
      document.title = page.title;
      return;
    }
    const now = page.querySelector("#live");
    const here = document.querySelector("#live");
    if (!now || !here) { location.reload(); return; }
    exchange(here, now);
    if (!now.dataset.watch) source?.close();
  } catch {
    // The connection is lost for a moment: the next event brings the page up to date.
  } finally {
    running = false;
    if (again) { again = false; setTimeout(refresh, 500); }
  }
}

// A browser has six connections to a server, for all tabs together: only those that somebody sees keep one.
let source;
function follow() {
  const live = document.querySelector("#live[data-watch]");
  source?.close();
  if (!live || document.hidden) return;
  source = new EventSource(live.dataset.watch);
  source.addEventListener("changed", refresh);
  // What happened while the connection was lost is on the page that the server shows now.
  let opened = false;
  source.addEventListener("open", () => { if (opened) refresh(); opened = true; });
  // There is nothing more to come, or not for this person: without this the browser would ask for ever.
  source.addEventListener("over", () => { source.close(); refresh(); });
  // The browser connects again by itself, unless the server refuses: then the page says why, such as that the session is over.
  source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) refresh(); });
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

document.addEventListener("visibilitychange", async () => {
  if (!document.querySelector("#live[data-watch]")) return;
  // What happened while nobody looked is on the page that the server shows now.
  if (!document.hidden) await refresh();
  follow();
});

// A form is sent once: a second click would ask for a second object. Files come without another page.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || form.dataset.stays !== undefined) return;
  if (form.dataset.sent !== undefined) { event.preventDefault(); return; }
  form.dataset.sent = "";
  // After the browser has taken down which button it was.
  setTimeout(() => sentButtons(form, true));
});

function sentButtons(form, sent) {
  for (const button of form.querySelectorAll("button")) button.disabled = sent;
}

// Somebody came back to the page as they left it.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    sentButtons(form, false);
  }
});

document.documentElement.classList.add("script");
enhance(document);
follow();
