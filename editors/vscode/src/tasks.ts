// Tasks: subcommands of relvm, whose errors the problem matcher puts into the Problems panel.

import * as vscode from "vscode";
import { findPython, relvmArguments } from "./python";

interface Definition extends vscode.TaskDefinition {
  /** A subcommand of relvm. */
  readonly command: string;
  /** Its arguments. */
  readonly args: readonly string[];
}

type Scope = vscode.WorkspaceFolder | vscode.TaskScope.Workspace;

/** Return a task that runs a subcommand of relvm. */
export async function relvmTask(command: string, args: readonly string[], file: vscode.Uri): Promise<vscode.Task> {
  const scope = vscode.workspace.getWorkspaceFolder(file) ?? vscode.TaskScope.Workspace;
  const name = `${command} ${vscode.workspace.asRelativePath(file)}`;
  return makeTask({ type: "relvm", command, args }, name, scope, file);
}

async function makeTask(definition: Definition, name: string, scope: Scope, file?: vscode.Uri): Promise<vscode.Task> {
  const python = await findPython(file ?? (typeof scope === "object" ? scope.uri : undefined));
  const execution = new vscode.ProcessExecution(python, relvmArguments(definition.command, ...definition.args));
  const task = new vscode.Task(definition, scope, name, "relvm", execution, "$relvm");
  if (definition.command === "compile") task.group = vscode.TaskGroup.Build;
  return task;
}

class Provider implements vscode.TaskProvider {
  /** Return the tasks of the current file. */
  async provideTasks(): Promise<vscode.Task[]> {
    const document = vscode.window.activeTextEditor?.document;
    if (document?.languageId !== "relvm" || document.uri.scheme !== "file") return [];
    const file = document.uri;
    return Promise.all([
      relvmTask("compile", [file.fsPath, "-o", file.fsPath.replace(/\.relvm$/, ".rvm")], file),
      relvmTask("run", [file.fsPath, "--random"], file),
      relvmTask("bench", [file.fsPath], file),
    ]);
  }

  /** Return a task of tasks.json with its execution. */
  async resolveTask(task: vscode.Task): Promise<vscode.Task | undefined> {
    const { command, args } = task.definition as Partial<Definition> & vscode.TaskDefinition;
    if (!command || !args) return undefined;
    const scope = typeof task.scope === "object" ? task.scope : vscode.TaskScope.Workspace;
    return makeTask(task.definition as Definition, task.name, scope);
  }
}

export function registerTasks(): vscode.Disposable {
  return vscode.tasks.registerTaskProvider("relvm", new Provider());
}
