"use strict";
// Settings, which the browser keeps.  Each page defines `settingsChanged`, which applies them.

const STORE = "relvm.stages";
const settings = { diff: true, wrap: false, names: false, theme: "light dark", list: 250, share: 0.5, ...stored() };

// Pages from files or in frames may not be allowed to store anything.
function stored() {
  try { return JSON.parse(localStorage.getItem(STORE)) ?? {}; } catch { return {}; }
}

function set(name, value) {
  settings[name] = value;
  try { localStorage.setItem(STORE, JSON.stringify(settings)); } catch { /* the setting lasts as long as the page */ }
  applySettings();
  settingsChanged(name);
}

function applySettings() {
  document.documentElement.style.colorScheme = settings.theme;
  for (const input of document.querySelectorAll("[data-setting]")) {
    if (input.type === "checkbox") input.checked = settings[input.dataset.setting];
    else input.value = settings[input.dataset.setting];
  }
}

for (const input of document.querySelectorAll("[data-setting]"))
  input.addEventListener("change", () => set(input.dataset.setting, input.type === "checkbox" ? input.checked : input.value));
