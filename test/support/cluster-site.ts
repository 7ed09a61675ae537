import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ApiClient } from "#api/client.ts";
import type { Registration } from "#api/schemas.ts";
import { addController } from "#pki/contexts.ts";
import { codec, createTestCluster, passphrase, type TestCluster } from "./cluster.ts";
import { nodeCredentials, recordAt, registrationOf, startControllers, type TestController } from "./controllers.ts";
import { TestProject, type CommandEnd } from "./kcore.ts";
import { kcoreEnvironment } from "./program.ts";
import { openShell, type ShellTerminal } from "./terminal.ts";

type Started = Awaited<ReturnType<typeof startControllers>>;

export interface SiteOptions extends NonNullable<Parameters<typeof startControllers>[2]> {
  /** Files of the operator's project. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Controllers, in this process or in processes of their own, and an operator's project whose commands reach them. */
export class ClusterSite {
  readonly cluster: TestCluster;
  readonly controllers: readonly TestController[];
  readonly project: TestProject;
  protected readonly ends: (() => Promise<void>)[];

  protected constructor(cluster: TestCluster, { controllers, stop }: Started, files: SiteOptions["files"] = {}) {
    this.cluster = cluster;
    this.controllers = controllers;
    this.project = new TestProject(files);
    this.ends = [stop, () => this.project.remove(), () => cluster.remove()];
    writeFileSync(this.passphraseFile, `${passphrase}\n`, { mode: 0o600 });
  }

  static async open(count: number, options: SiteOptions = {}): Promise<ClusterSite> {
    const cluster = await createTestCluster();
    const site = new ClusterSite(cluster, await startControllers(cluster, count, options), options.files);
    await site.addToContext();
    return site;
  }

  protected async addToContext(): Promise<void> {
    const contextHome = { home: this.cluster.home, codec };
    for (const { endpoint } of this.controllers) await addController(contextHome, "lab", endpoint);
  }

  /** The file with the CA's passphrase, in the project. */
  get passphraseFile(): string {
    return join(this.project.project, "passphrase");
  }

  at(index: number): TestController {
    const found = this.controllers[index];
    if (!found) throw new Error(`there is no controller ${index}`);
    return found;
  }

  /** Records a node's certificate and registers the node; returns its id and client. */
  async register(
    hostname: string,
    changes: Partial<Registration> = {},
    through = this.at(0),
  ): Promise<{ readonly id: string; readonly client: ApiClient }> {
    const id = randomUUID();
    const credentials = nodeCredentials(this.cluster, id);
    await recordAt(through, credentials);
    const client = through.clientOf(credentials);
    await client.call("registerNode", registrationOf(id, { hostname, ...changes }));
    return { id, client };
  }

  /** Starts `kcore WORDS…` as the operator in the project. */
  start(...words: readonly string[]): ReturnType<TestProject["start"]> {
    return this.project.start(words, { KCORE_HOME: this.cluster.home });
  }

  /** Runs kcore in this process, for tests that need no process of its own. */
  call(...words: readonly string[]): Promise<CommandEnd> {
    return this.project.call(words, { KCORE_HOME: this.cluster.home });
  }

  /** Opens the operator's shell in the project. */
  openShell(columns: number, rows: number, more: Readonly<Record<string, string>> = {}): Promise<ShellTerminal> {
    const options = { cwd: this.project.project, columns, rows };
    return openShell(options, { ...kcoreEnvironment, KCORE_HOME: this.cluster.home, ...more });
  }

  async stop(): Promise<void> {
    for (const end of this.ends) await end();
  }
}
