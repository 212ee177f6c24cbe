// The debugger: `relvm dap`.

import * as vscode from "vscode";
import { findPython, findPythonWith, relvmArguments, showError } from "./python";

class AdapterFactory implements vscode.DebugAdapterDescriptorFactory {
  async createDebugAdapterDescriptor(session: vscode.DebugSession): Promise<vscode.DebugAdapterDescriptor> {
    const folder = session.workspaceFolder?.uri;
    const python = await findPython(folder); // the configuration provider has checked it
    return new vscode.DebugAdapterExecutable(python, relvmArguments("dap"), { cwd: folder?.fsPath });
  }
}

class ConfigurationProvider implements vscode.DebugConfigurationProvider {
  /** Return the configuration, or that of the current file if there is no launch.json. */
  resolveDebugConfiguration(
    _folder: vscode.WorkspaceFolder | undefined,
    given: vscode.DebugConfiguration,
  ): vscode.DebugConfiguration | undefined {
    if (given.type) return given;
    return vscode.window.activeTextEditor?.document.languageId === "relvm" ? configuration("${file}") : undefined;
  }

  /** Return the configuration, or undefined, which ends the session, if no interpreter can run relvm. */
  async resolveDebugConfigurationWithSubstitutedVariables(
    folder: vscode.WorkspaceFolder | undefined,
    given: vscode.DebugConfiguration,
  ): Promise<vscode.DebugConfiguration | undefined> {
    try {
      await findPythonWith(["relvm"], folder?.uri);
      return given;
    } catch (error) {
      void showError(error);
      return undefined;
    }
  }
}

function configuration(program: string): vscode.DebugConfiguration {
  return { type: "relvm", request: "launch", name: "relvm: debug the current file", program, stopOnEntry: true };
}

/** Debug a file with random inputs, from its first computation on. */
export async function debugFile(file: vscode.Uri): Promise<void> {
  await vscode.debug.startDebugging(vscode.workspace.getWorkspaceFolder(file), configuration(file.fsPath));
}

export function registerDebugger(): vscode.Disposable[] {
  return [
    vscode.debug.registerDebugAdapterDescriptorFactory("relvm", new AdapterFactory()),
    vscode.debug.registerDebugConfigurationProvider("relvm", new ConfigurationProvider()),
  ];
}
