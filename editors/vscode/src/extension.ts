// The entry point of the extension.

import * as vscode from "vscode";
import { debugFile, registerDebugger } from "./debug";
import { showError } from "./python";
import { Server } from "./server";
import { openExplorer, showStages } from "./stages";
import { registerTasks } from "./tasks";

export function activate(context: vscode.ExtensionContext): void {
  const server = new Server();
  context.subscriptions.push(
    server,
    ...registerDebugger(),
    registerTasks(),
    fileCommand("relvm.debugFile", debugFile),
    fileCommand("relvm.showStages", showStages),
    fileCommand("relvm.openExplorer", openExplorer),
    vscode.commands.registerCommand("relvm.restartServer", () => server.restart()),
  );
  void server.restart();
}

/** Register a command for a file: the one that was clicked, or that of the active editor, which is saved first. */
function fileCommand(command: string, action: (file: vscode.Uri) => Promise<void>): vscode.Disposable {
  return vscode.commands.registerCommand(command, async (clicked?: vscode.Uri) => {
    const file = clicked ?? vscode.window.activeTextEditor?.document.uri;
    if (file?.scheme !== "file") {
      void vscode.window.showErrorMessage("relvm: expected a file; open or save a .relvm file first");
      return;
    }
    try {
      await vscode.workspace.save(file);
      await action(file);
    } catch (error) {
      void showError(error);
    }
  });
}
