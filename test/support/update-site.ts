import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeBundleFile } from "#cli/update/bundle-file.ts";
import { addController } from "#pki/contexts.ts";
import type { Bundle } from "#rollout/spec.ts";
import { writeRuntime } from "./bundles.ts";
import { codec, createTestCluster, eventually, passphrase, type TestCluster } from "./cluster.ts";
import { areAllInStep, startControllers, type TestController } from "./controllers.ts";
import { TestProject, type Ended } from "./kcore.ts";
import { kcoreEnvironment } from "./program.ts";
import { startRolloutNodes, type RolloutNode, type RolloutNodeOptions } from "./rollout-nodes.ts";
import { openShell, type ShellTerminal } from "./terminal.ts";

export interface UpdateSiteOptions {
  /** The controllers as processes of their own. */
  readonly processes?: boolean;
  readonly nodes: readonly RolloutNodeOptions[];
  /** Versions of the runtime whose bundles lie in the project. */
  readonly versions: readonly string[];
  /** The file of each. */
  readonly bundleName?: (version: string) => string;
}

/**
 * Three controllers in two datacenters with simulated nodes, and an operator's project whose commands reach them: bundles lie in it, and the
 * CA's passphrase in a file `passphrase`.
 */
export class UpdateSite {
  readonly cluster: TestCluster;
  readonly controllers: readonly TestController[];
  readonly project = new TestProject();
  #nodes: readonly RolloutNode[] = [];
  readonly #ends: (() => Promise<void>)[];

  private constructor(cluster: TestCluster, { controllers, stop }: Awaited<ReturnType<typeof startControllers>>) {
    this.cluster = cluster;
    this.controllers = controllers;
    this.#ends = [stop, () => this.project.remove(), () => cluster.remove()];
  }

  static async start(options: UpdateSiteOptions): Promise<UpdateSite> {
    const cluster = await createTestCluster();
    const { processes = false } = options;
    const site = new UpdateSite(cluster, await startControllers(cluster, 3, { dcs: ["DC1", "DC1", "DC2"], processes }));
    try {
      await site.#furnish(options);
      return site;
    } catch (error) {
      await site.stop();
      throw error;
    }
  }

  async #furnish({ nodes, versions, bundleName }: UpdateSiteOptions): Promise<void> {
    const { cluster, controllers, project } = this;
    for (const { endpoint } of controllers) await addController({ home: cluster.home, codec }, "lab", endpoint);
    writeFileSync(join(project.project, "passphrase"), `${passphrase}\n`, { mode: 0o600 });
    for (const version of versions) await this.writeBundle(version, { name: bundleName?.(version) ?? version });
    const { nodes: made, stop } = await startRolloutNodes(cluster, controllers, nodes);
    this.#nodes = made;
    this.#ends.unshift(stop);
    await eventually(() => areAllInStep(controllers));
  }

  /** A small runtime of that version, as a bundle in the project. */
  async writeBundle(
    version: string,
    { name = version, size }: { readonly name?: string; readonly size?: number } = {},
  ): Promise<Bundle> {
    const { bundle, file } = await writeRuntime(this.project.path, version, size);
    await writeBundleFile(join(this.project.project, name), { bundle, file, start: 0 });
    return bundle;
  }

  /** Writes NAME.yaml, a manifest of that update; gives its file. */
  writeManifest(name: string, spec: object): string {
    const file = `${name}.yaml`;
    writeFileSync(join(this.project.project, file), codec.print({ kind: "ClusterUpdate", metadata: { name }, spec }));
    return file;
  }

  node(name: string): RolloutNode {
    const found = this.#nodes.find(({ hostname }) => hostname === name);
    if (!found) throw new Error(`there is no node ${name}`);
    return found;
  }

  /** `kcore WORDS…`, by the operator in the project. */
  start(...words: readonly string[]): ReturnType<TestProject["start"]> {
    return this.project.start(words, { KCORE_HOME: this.cluster.home });
  }

  /** The same in this process, for what needs no process of its own. */
  call(...words: readonly string[]): Promise<Ended> {
    return this.project.call(words, { KCORE_HOME: this.cluster.home });
  }

  /** The operator's shell in the project. */
  openShell(columns: number, rows: number): Promise<ShellTerminal> {
    const place = { cwd: this.project.project, columns, rows };
    return openShell(place, { ...kcoreEnvironment, KCORE_HOME: this.cluster.home });
  }

  async stop(): Promise<void> {
    for (const end of this.#ends) await end();
  }
}
