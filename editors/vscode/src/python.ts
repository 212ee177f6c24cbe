// The Python interpreter that runs relvm, and messages if it cannot.

import { execFile } from "node:child_process";
import * as vscode from "vscode";

/** The part of the API of the Python extension (ms-python.python) that this extension uses. */
interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(
      environment: { readonly path: string },
    ): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

/** Return the API of the Python extension, or undefined if the extension is not installed or has no such API. */
export async function pythonApi(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<Partial<PythonApi> | undefined>("ms-python.python");
  const api = await extension?.activate();
  return api?.environments ? (api as PythonApi) : undefined;
}

/** Return the interpreter for a file: the setting, else that of the Python extension, else the one on the PATH. */
export async function findPython(resource?: vscode.Uri): Promise<string> {
  const setting = vscode.workspace.getConfiguration("relvm", resource).get<string>("python", "").trim();
  if (setting) return setting;
  const environments = (await pythonApi())?.environments;
  const environment = await environments?.resolveEnvironment(environments.getActiveEnvironmentPath(resource));
  return environment?.executable.uri?.fsPath ?? (process.platform === "win32" ? "python" : "python3");
}

/** Return the arguments of an interpreter that run a subcommand of relvm. -P: not from a folder named relvm. */
export function relvmArguments(...words: string[]): string[] {
  return ["-P", "-m", "relvm", ...words];
}

/** An interpreter cannot run relvm. `command`: what to run in a terminal to mend this, or "". */
export class PythonError extends Error {
  constructor(message: string, readonly command = "") {
    super(message);
  }
}

/** Return the interpreter for a file. Throw PythonError if it cannot import the modules, of which relvm is one. */
export async function findPythonWith(modules: readonly string[], resource?: vscode.Uri): Promise<string> {
  const python = await findPython(resource);
  const result = await run(python, ["-P", "-c", `import ${modules.join(", ")}`]);
  if (result.status === 0) return python;
  if (result.status === undefined) {
    throw new PythonError(`${python}: ${result.stderr}. Set relvm.python to an interpreter that has relvm.`);
  }
  if (result.stderr.includes("Unknown option: -P")) {
    throw new PythonError(`${python} is too old: relvm needs Python 3.11 or later. Set relvm.python to another one.`);
  }
  const missing = /ModuleNotFoundError: No module named '(\w+)/.exec(result.stderr)?.[1];
  if (missing) {
    const command = `${quoted(python)} -m pip install ${quoted("relvm[editor]")}`;
    throw new PythonError(`${python} has no package ${missing}. Install it with: ${command}`, command);
  }
  throw new PythonError(`${python} cannot import relvm: ${lastLine(result.stderr)}`);
}

/** Show a PythonError, with buttons that help; show any other error as it is. */
export async function showError(error: unknown): Promise<void> {
  const message = error instanceof Error ? error.message : String(error);
  const open = "Open Settings";
  const copy = "Copy Command";
  const buttons = error instanceof PythonError ? [...(error.command ? [copy] : []), open] : [];
  const chosen = await vscode.window.showErrorMessage(`relvm: ${message}`, ...buttons);
  if (chosen === copy && error instanceof PythonError) await vscode.env.clipboard.writeText(error.command);
  if (chosen === open) await vscode.commands.executeCommand("workbench.action.openSettings", "relvm.python");
}

interface Result {
  /** The exit status, or undefined if the program did not start. */
  readonly status: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Run a program to its end. */
export function run(program: string, args: readonly string[], cwd?: string): Promise<Result> {
  return new Promise((resolve) => {
    execFile(program, args, { cwd, maxBuffer: 1 << 28 }, (error, stdout, stderr) => {
      if (!error) resolve({ status: 0, stdout, stderr });
      else if (typeof error.code === "number") resolve({ status: error.code, stdout, stderr });
      else resolve({ status: undefined, stdout, stderr: error.message });
    });
  });
}

function quoted(word: string): string {
  return /^[\w./:\\-]+$/.test(word) ? word : `"${word}"`;
}

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1) ?? "";
}
