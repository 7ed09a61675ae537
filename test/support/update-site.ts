import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeBundleFile } from "#cli/update/bundles.ts";
import { writeRuntime } from "./bundles.ts";
import { codec, createTestCluster, eventually } from "./cluster.ts";
import { ClusterSite } from "./cluster-site.ts";
import { areAllInStep, startControllers } from "./controllers.ts";
import { startRolloutNodes, type RolloutNodeOptions } from "./rollout-nodes.ts";

export interface UpdateSiteOptions {
  readonly nodes: readonly RolloutNodeOptions[];
  /** Versions of the runtime whose bundles lie in the project. */
  readonly versions: readonly string[];
  /** The bundle's file for a version; by default the version. */
  readonly bundleName?: (version: string) => string;
}

/** Three controllers in two datacenters with simulated nodes, and an operator's project with bundles. */
export class UpdateSite extends ClusterSite {
  static async start(options: UpdateSiteOptions): Promise<UpdateSite> {
    const cluster = await createTestCluster();
    const site = new UpdateSite(cluster, await startControllers(cluster, 3, { dcs: ["DC1", "DC1", "DC2"] }));
    try {
      await site.#furnish(options);
      return site;
    } catch (error) {
      await site.stop();
      throw error;
    }
  }

  async #furnish({ nodes, versions, bundleName }: UpdateSiteOptions): Promise<void> {
    const { cluster, controllers } = this;
    await this.addToContext();
    for (const version of versions) await this.#writeBundle(version, bundleName?.(version) ?? version);
    const stop = await startRolloutNodes(cluster, controllers, nodes);
    this.ends.unshift(stop);
    await eventually(() => areAllInStep(controllers));
  }

  /** Writes a small runtime of that version as a bundle into the project. */
  async #writeBundle(version: string, name: string): Promise<void> {
    const { bundle, file } = await writeRuntime(this.project.path, version);
    await writeBundleFile(join(this.project.project, name), { bundle, file, start: 0 });
  }

  /** Writes the manifest of an update to NAME.yaml, and returns that name. */
  writeManifest(name: string, spec: object): string {
    const file = `${name}.yaml`;
    writeFileSync(join(this.project.project, file), codec.print({ kind: "ClusterUpdate", metadata: { name }, spec }));
    return file;
  }
}
