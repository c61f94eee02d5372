// Fetches this page again after each change and shows what is different. Without scripts the page works by reloading.
let isDue = false;
let isBusy = false;
let shown = { address: "", version: "" };

async function refresh() {
  isDue = true;
  if (isBusy) return;
  isBusy = true;
  try {
    while (isDue) {
      isDue = false;
      const address = location.pathname + location.search;
      const headers = shown.address === address ? { "If-None-Match": shown.version } : {};
      const answer = await fetch(address, { headers, cache: "no-store" });
      if (!answer.ok) continue; // nothing has changed
      show(new DOMParser().parseFromString(await answer.text(), "text/html"));
      shown = { address, version: answer.headers.get("ETag") };
    }
  } catch {
    // The server has ended; the event source connects again when it is back.
  } finally {
    isBusy = false;
  }
}

function show(fresh) {
  for (const old of document.querySelectorAll("[data-live]")) {
    const now = fresh.getElementById(old.id);
    if (now) update(old, now);
  }
}

// Changes only what is different: a screen reader hears what is new, and focus and scroll positions stay.
function update(old, now) {
  keepOpen(old, now);
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const isAtEnd = old.scrollTop + old.clientHeight >= old.scrollHeight - 40;
  const children = [...now.children];
  children.forEach((child, at) => {
    const there = old.children[at];
    if (!there) old.append(child);
    else if (!there.isEqualNode(child)) there.replaceWith(child);
  });
  while (old.children.length > children.length) old.lastElementChild.remove();
  if (focused && !focused.isConnected) focusAgain(focused);
  if (isAtEnd && old.matches(".messages")) old.scrollTop = old.scrollHeight;
}

// Details that were opened stay open, until a new turn opens instead.
function keepOpen(old, now) {
  const wasOpen = new Map([...old.querySelectorAll("details")].map((each) => [each.id, each.open]));
  const details = [...now.querySelectorAll("details")];
  const isNewTurn = details.some((each) => each.matches(".turn") && !wasOpen.has(each.id));
  for (const each of details) {
    if (wasOpen.has(each.id) && !(isNewTurn && each.matches(".turn"))) each.open = wasOpen.get(each.id);
  }
}

function focusAgain(gone) {
  const again = document.getElementById(gone.closest("[id]")?.id) ?? document.querySelector(".place textarea");
  (gone.matches("summary") ? again.querySelector("summary") : again)?.focus();
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches(".say")) return;
  if (form.elements.forward && !event.submitter?.name) return; // this opens the other chat
  event.preventDefault();
  const { submitter } = event;
  if ([...form.elements.file.files].some((file) => file.size > 20 * 2 ** 20)) return tell(form, "Telegram takes files up to 20 MB.");
  const body = new FormData(form, submitter);
  if (!submitter?.name) form.elements.text.value = form.elements.file.value = "";
  if (!submitter?.formAction.match(/\/(press|stop)$/)) {
    history.replaceState(null, "", `/?at=${encodeURIComponent(form.elements.at.value)}`);
  }
  const answer = await fetch(submitter?.getAttribute("formaction") ?? form.action, { method: "POST", body, redirect: "manual" });
  tell(form, answer.status >= 400 ? await answer.text() : ""); // what was sent redirects, which has the status 0
  refresh();
});

function tell(form, trouble) {
  form.querySelector(".trouble").textContent = trouble;
}

// Several pictures become an album.
function attach(form, files) {
  const chosen = new DataTransfer();
  for (const file of files) chosen.items.add(file);
  form.elements.file.files = chosen.files;
  form.elements.file.focus();
}

const hasFiles = (event) => event.dataTransfer?.types.includes("Files");

document.addEventListener("dragover", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  document.querySelector(".place").classList.toggle("dropping", Boolean(event.target.closest(".place")));
});

document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.querySelector(".place").classList.remove("dropping");
});

document.addEventListener("drop", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault(); // else the browser opens the file instead of this page
  document.querySelector(".place").classList.remove("dropping");
  const form = event.target.closest(".place")?.querySelector(".say");
  if (form && event.dataTransfer.files.length) attach(form, event.dataTransfer.files);
});

document.addEventListener("paste", (event) => {
  const form = event.target.closest?.(".say");
  if (!form || !event.clipboardData.files.length) return;
  event.preventDefault();
  attach(form, event.clipboardData.files);
});

let recorder = null;

async function record(button) {
  if (recorder) return recorder.stop();
  const { form } = button;
  if (button.ariaBusy) return; // the browser is asking the person
  button.ariaBusy = true;
  try {
    const sound = await navigator.mediaDevices.getUserMedia({ audio: true });
    recorder = new MediaRecorder(sound);
  } catch {
    return tell(form, "The browser does not let this page record.");
  } finally {
    button.ariaBusy = null;
  }
  const parts = [];
  const name = (isOn) => {
    button.setAttribute("aria-pressed", isOn);
    button.textContent = isOn ? "Stop recording" : "Record a sound";
  };
  recorder.ondataavailable = (event) => parts.push(event.data);
  recorder.onstop = () => {
    const [type] = recorder.mimeType.split(";");
    recorder.stream.getTracks().forEach((track) => track.stop());
    recorder = null;
    name(false);
    attach(form, [new File(parts, `voice.${type.split("/")[1]}`, { type })]);
  };
  recorder.start();
  name(true);
  tell(form, "");
}

for (const button of document.querySelectorAll(".record")) {
  button.hidden = !(navigator.mediaDevices && window.MediaRecorder);
  button.addEventListener("click", () => record(button));
}

document.addEventListener("keydown", (event) => {
  const text = event.target;
  if (!text.matches("textarea") || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  const { file, forward } = text.form.elements;
  if (text.value.trim() || file.value || forward) text.form.requestSubmit();
});

for (const messages of document.querySelectorAll(".messages")) {
  if (!messages.querySelector(":target")) messages.scrollTop = messages.scrollHeight;
}
if (location.hash === "#panel") document.getElementById("panel").focus();
else if (matchMedia("(min-width: 60rem)").matches) document.querySelector(".place textarea").focus();
new EventSource("/events").onmessage = refresh;
