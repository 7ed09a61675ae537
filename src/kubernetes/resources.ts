import { exitCodes, KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { KubeApi } from "./api.ts";
import { apiRoot, type ApiTarget } from "./target.ts";
import { ResourcesShape, type KubeObject, type ApiResource } from "./objects.ts";
import { KubeRefusal } from "./refusals.ts";

/** Finds the targets of objects; remembers the resources of each group version. */
export class Resources {
  readonly #api: KubeApi;
  readonly #known = new Map<string, Promise<readonly ApiResource[]>>();

  constructor(api: KubeApi) {
    this.#api = api;
  }

  /** The object's target, with the namespace that it has or gets. @throws KcoreError KUBERNETES_KIND_UNKNOWN */
  async targetOf({ apiVersion, kind, metadata }: KubeObject, namespace: string): Promise<ApiTarget> {
    const resources = await this.#of(apiVersion);
    const resource = resources.find((each) => each.kind === kind);
    if (resource === undefined) {
      // The next call queries again: the kind's definition may be created meanwhile.
      this.#known.delete(apiVersion);
      const kinds = resources.map((each) => each.kind);
      throw new KcoreError(
        {
          code: "KUBERNETES_KIND_UNKNOWN",
          message: `the cluster has no ${kind} in ${apiVersion}`,
          hint:
            kinds.length === 0
              ? "check apiVersion; kubectl api-versions lists what the cluster has"
              : suggestHint(kind, kinds, `${apiVersion} has: ${[...new Set(kinds)].join(", ")}`),
        },
        { exitCode: exitCodes.failed },
      );
    }
    const place = resource.namespaced ? { namespace: metadata.namespace ?? namespace } : {};
    return { apiVersion, resource: resource.name, ...place, name: metadata.name };
  }

  async #of(apiVersion: string): Promise<readonly ApiResource[]> {
    const known = this.#known.get(apiVersion) ?? this.#ask(apiVersion);
    this.#known.set(apiVersion, known);
    known.catch(() => this.#known.delete(apiVersion));
    return known;
  }

  async #ask(apiVersion: string): Promise<readonly ApiResource[]> {
    try {
      const path = apiRoot(apiVersion);
      const { resources } = await this.#api.read<{ readonly resources: readonly ApiResource[] }>(path, ResourcesShape);
      return resources.filter(({ name }) => !name.includes("/"));
    } catch (error) {
      if (error instanceof KubeRefusal && error.status === 404) return [];
      throw error;
    }
  }
}
