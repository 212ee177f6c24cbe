// The language server: `relvm lsp`.

import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";
import { findPythonWith, pythonApi, relvmArguments, showError } from "./python";

/** Starts the language server, and starts it anew when the interpreter changes. */
export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private queue: Promise<void> = Promise.resolve();
  private readonly disposables: vscode.Disposable[] = [];

  constructor() {
    this.disposables.push(
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.restart()),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration("relvm.python")) void this.restart();
      }),
    );
    void pythonApi().then((api) => {
      if (api) this.disposables.push(api.environments.onDidChangeActiveEnvironmentPath(() => this.restart()));
    });
  }

  /** Start the server, or stop it and start it again. Calls run one after the other. */
  restart(): Promise<void> {
    this.queue = this.queue.then(async () => {
      await this.stop();
      if (!vscode.workspace.isTrusted) return;
      try {
        await this.start();
      } catch (error) {
        await this.stop();
        void showError(error);
      }
    });
    return this.queue;
  }

  dispose(): Promise<void> {
    for (const each of this.disposables) each.dispose();
    this.queue = this.queue.then(() => this.stop());
    return this.queue;
  }

  private async start(): Promise<void> {
    const folder = vscode.workspace.workspaceFolders?.[0];
    const command = await findPythonWith(["relvm", "pygls"], folder?.uri);
    const server = { command, args: relvmArguments("lsp"), options: { cwd: folder?.uri.fsPath } };
    this.client = new LanguageClient("relvm", "relvm", server, { documentSelector: [{ language: "relvm" }] });
    await this.client.start();
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client?.needsStop()) await client.stop();
    await client?.dispose();
  }
}
