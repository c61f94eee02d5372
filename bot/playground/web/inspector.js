// Fetches this page again and shows what is different. Without scripts the page works by reloading.
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
  if (!fresh.getElementById(document.querySelector(".place").id)) return location.assign("/"); // this chat is gone
  const hadReply = document.querySelector(".reply input");
  const pane = document.querySelector(".messages");
  const follows = isAtEnd(pane);
  // What is read stays where it is, although the first messages may go and move all others.
  const isRead = (each) => each.offsetTop + each.offsetHeight > pane.scrollTop && fresh.getElementById(each.id);
  const read = [...pane.querySelectorAll("article")].find(isRead);
  const height = read?.offsetTop - pane.scrollTop;
  for (const old of document.querySelectorAll("[data-live]")) {
    const now = fresh.getElementById(old.id);
    if (now) update(old, now);
  }
  if (follows) toEnd(pane);
  else if (read) pane.scrollTop = document.getElementById(read.id).offsetTop - height;
  if (!hadReply && document.querySelector(".reply input")) document.querySelector(".place textarea").focus();
}

// Changes only what is different: a screen reader hears what is new, and focus and scroll positions stay.
function update(old, now) {
  keepOpen(old, now);
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const children = [...now.children];
  children.forEach((child, at) => {
    const there = old.children[at];
    if (!there) old.append(child);
    else if (!there.isEqualNode(child)) there.replaceWith(child);
  });
  while (old.children.length > children.length) old.lastElementChild.remove();
  if (focused && !focused.isConnected) focusAgain(focused);
}

// A chat stays at its end, also when the room for it changes, unless the person has scrolled up.
const ends = new Map(); // where the end was when the chat was last seen there
const isAtEnd = (pane) => pane.scrollTop >= ends.get(pane);

function toEnd(pane) {
  pane.scrollTop = pane.scrollHeight;
  ends.set(pane, pane.scrollTop);
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
  event.preventDefault();
  const { submitter } = event;
  if ([...form.elements.file.files].some((file) => file.size > 20 * 2 ** 20)) return tell(form, "Telegram takes files up to 20 MB.");
  const { text, file } = form.elements;
  if (text.value.length > 100_000) return tell(form, "This is too long for a message: attach it as a file.");
  const body = new FormData(form, submitter);
  const written = submitter?.name ? null : [text.value, [...file.files]];
  ends.set(document.querySelector(".messages"), 0); // what is sent is shown, wherever the person was
  if (written) text.value = file.value = "";
  const trouble = await post(submitter?.getAttribute("formaction") ?? form.action, body);
  if (trouble && written) { // nothing that was written is lost; what was written meanwhile follows
    text.value = [written[0], text.value].filter(Boolean).join("\n");
    if (!file.value) choose(file, written[1]);
  }
  tell(form, trouble);
  if (trouble) return;
  if (!submitter?.formAction.match(/\/(press|stop)$/)) {
    history.replaceState(null, "", `/?at=${encodeURIComponent(form.elements.at.value)}`);
  }
  refresh();
});

// Returns what to say if a form was not taken.
async function post(address, body) {
  try {
    const answer = await fetch(address, { method: "POST", body, redirect: "manual" });
    return answer.status >= 400 ? (await answer.text()) || "Not sent." : ""; // what was taken redirects, which has the status 0
  } catch {
    return "Not sent: the playground does not answer. Start it again where you started it, and send this once more.";
  }
}

function tell(form, trouble) {
  form.querySelector(".trouble").textContent = trouble;
}

// Several pictures become an album.
function choose(input, files) {
  const chosen = new DataTransfer();
  for (const file of files) chosen.items.add(file);
  input.files = chosen.files;
}

function attach(form, files) {
  choose(form.elements.file, files);
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

document.addEventListener("click", async ({ target }) => {
  if (!target.matches(".copy")) return;
  await navigator.clipboard.writeText(target.previousElementSibling.textContent);
  target.textContent = "Copied";
});

for (const button of document.querySelectorAll(".record")) {
  button.hidden = !(navigator.mediaDevices && window.MediaRecorder);
  button.addEventListener("click", () => record(button));
}

document.addEventListener("keydown", (event) => {
  const text = event.target;
  if (!text.matches("textarea") || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (text.value.trim() || text.form.elements.file.value) text.form.requestSubmit();
});

// The sheets at the top close as menus do: by Escape, and by a click beside them.
function closeSheets(event) {
  for (const sheet of document.querySelectorAll("#key[open], #scene[open]")) {
    if (event.key === "Escape" || (event.type === "click" && !sheet.contains(event.target))) sheet.open = false;
  }
}
document.addEventListener("keydown", closeSheets);
document.addEventListener("click", closeSheets);

const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => isAtEnd(target) && toEnd(target)));
for (const pane of document.querySelectorAll(".messages")) {
  if (!pane.querySelector(":target")) toEnd(pane);
  pane.addEventListener("scroll", () => ends.set(pane, pane.scrollTop + pane.clientHeight >= pane.scrollHeight - 40 ? pane.scrollTop : Infinity));
  resized.observe(pane);
}
if (location.hash === "#panel") document.getElementById("panel").focus();
else if (matchMedia("(min-width: 60rem)").matches) document.querySelector(".place textarea").focus();
new EventSource("/events").onmessage = refresh;
