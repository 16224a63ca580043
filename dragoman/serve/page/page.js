// The translation page. Text from users and models is shown only through textContent, never as markup.
"use strict";

const WAIT_MS = 250; // after the last key, to avoid a request for every letter
const RETRY_MS = 1000; // when the server is busy
const place = (id) => document.getElementById(id);
const [source, target, state, others, list, model] =
  ["source", "target", "state", "others", "alternatives", "model"].map(place);
const wanted = Number(document.body.dataset.alternatives);
let timer = 0;
let underWay = null; // AbortController of the newest request
let token = sessionStorage.getItem("token") || "";

function later(milliseconds = WAIT_MS) {
  clearTimeout(timer);
  timer = setTimeout(translate, milliseconds);
}

async function translate() {
  underWay?.abort();
  const text = source.value;
  if (!text.trim()) return show({ text: "", alternatives: [] }, "");
  const controller = (underWay = new AbortController());
  target.classList.add("old");
  const began = performance.now();
  try {
    const answer = await request(text, controller.signal);
    if (answer) show(answer, `${Math.round(performance.now() - began)} ms`);
  } catch (error) {
    if (error.name !== "AbortError") showError("The server cannot be reached.");
  }
}

async function request(text, signal) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const body = JSON.stringify({ text, model: model.value, alternatives: wanted });
  const response = await fetch("/v1/translate", { method: "POST", headers, body, signal });
  const answer = await response.json();
  place("access").hidden = response.status !== 401;
  if (response.ok) return answer.translations[0];
  if (response.status === 429) later(RETRY_MS);
  showError(answer.error);
  return null;
}

function show(translation, message) {
  target.textContent = translation.text;
  target.classList.remove("old");
  state.textContent = message;
  state.classList.remove("bad");
  place("copy").hidden = !translation.text;
  const different = [...new Set(translation.alternatives.map((other) => other.text))]
    .filter((text) => text !== translation.text);
  list.replaceChildren(...different.map(alternative));
  others.hidden = !different.length;
}

// Clicking an alternative swaps it with the translation shown.
function alternative(text) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.addEventListener("click", () => {
    [button.textContent, target.textContent] = [target.textContent, button.textContent];
  });
  const item = document.createElement("li");
  item.append(button);
  return item;
}

function showError(message) {
  state.textContent = message;
  state.classList.add("bad");
}

async function copy() {
  if (!target.textContent) return;
  try {
    await navigator.clipboard.writeText(target.textContent);
    state.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(target); // a page without https may not copy, so select for the user
    state.textContent = "Selected; copy it with your keyboard";
  }
}

function clear() {
  source.value = "";
  typed();
  source.focus();
}

function typed() {
  place("count").textContent = source.value.length.toLocaleString("en");
  place("clear").hidden = !source.value;
  later();
}

function nameLanguages() {
  const names = new Intl.DisplayNames(["en"], { type: "language" });
  const name = (code, otherwise) => {
    try { return code ? names.of(code) : otherwise; } catch { return code; }
  };
  const { source: from, target: to } = model.selectedOptions[0].dataset;
  place("source-label").textContent = name(from, "Text");
  place("target-label").textContent = name(to, "Translation");
  source.lang = from;
  target.lang = to;
}

function useTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  const systems = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const other = (theme || systems) === "dark" ? "light" : "dark";
  place("theme").textContent = other === "dark" ? "Dark" : "Light";
  place("theme").dataset.other = other;
}

source.addEventListener("input", typed);
model.addEventListener("change", () => { nameLanguages(); later(0); });
place("clear").addEventListener("click", clear);
place("copy").addEventListener("click", copy);
place("theme").addEventListener("click", () => {
  localStorage.setItem("theme", place("theme").dataset.other);
  useTheme(place("theme").dataset.other);
});
place("access").addEventListener("submit", (event) => {
  event.preventDefault();
  token = place("token").value;
  sessionStorage.setItem("token", token); // forgotten when the tab closes
  later(0);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && source.value) clear();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) copy();
});

useTheme(localStorage.getItem("theme"));
nameLanguages();
if (source.value) typed(); // going back to the page, browsers keep the typed text
