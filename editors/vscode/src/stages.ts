// The page of all compilation stages, in a panel, and the explorer, in a browser.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { findPythonWith, relvmArguments, run } from "./python";
import { relvmTask } from "./tasks";

/** Show the page of `relvm show --html` for a file. */
export async function showStages(file: vscode.Uri): Promise<void> {
  const name = path.basename(file.fsPath);
  const progress = { location: vscode.ProgressLocation.Notification, title: `relvm: stages of ${name}` };
  const page = await vscode.window.withProgress(progress, () => stagesPage(file));
  const panel = vscode.window.createWebviewPanel("relvm.stages", `Stages of ${name}`, vscode.ViewColumn.Active, {
    enableScripts: true,
    enableFindWidget: true,
    retainContextWhenHidden: true,
  });
  panel.webview.html = page.replace("<head>", (head) => head + colors());
}

/** Return HTML that gives the page the colors of the theme, and removes the styles that VS Code adds to every page. */
function colors(): string {
  const { Light, HighContrastLight } = vscode.ColorThemeKind;
  const scheme = [Light, HighContrastLight].includes(vscode.window.activeColorTheme.kind) ? "light" : "dark";
  return `<style>:root { color-scheme: ${scheme} !important } [data-setting="theme"] { display: none }</style>
<script>document.getElementById("_defaultStyles")?.remove()</script>`;
}

async function stagesPage(file: vscode.Uri): Promise<string> {
  const python = await findPythonWith(["relvm"], file);
  const folder = await mkdtemp(path.join(tmpdir(), "relvm-"));
  try {
    const page = path.join(folder, "stages.html");
    const result = await run(python, relvmArguments("show", "--quiet", file.fsPath, "--html", page));
    if (result.status !== 0) throw new Error(result.stderr.replace(/^relvm: error: /, ""));
    return await readFile(page, "utf8");
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Start `relvm explore` for a file in a terminal. It opens its page in a browser. */
export async function openExplorer(file: vscode.Uri): Promise<void> {
  await findPythonWith(["relvm"], file);
  const task = await relvmTask("explore", [file.fsPath], file);
  task.isBackground = true;
  await vscode.tasks.executeTask(task);
}
