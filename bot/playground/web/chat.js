// Shows what happens as it happens. Without this script the page works by reloading.
const messages = document.getElementById("messages");
const text = document.getElementById("text");

async function refresh() {
  const answer = await fetch("/messages");
  messages.innerHTML = await answer.text();
  window.scrollTo(0, document.body.scrollHeight);
}

function post(form, submitter) {
  const data = new FormData(form, submitter);
  return fetch(form.action, { method: "POST", body: new URLSearchParams(data), redirect: "manual" });
}

document.addEventListener("submit", async (event) => {
  event.preventDefault();
  const sent = post(event.target, event.submitter);
  if (event.target.id === "say") text.value = "";
  await sent;
});

text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    if (text.value.trim()) text.form.requestSubmit();
  }
});

new EventSource("/events").onmessage = refresh;
