import type { RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node/dist/config.js";

// The only file that imports @kubernetes/client-node (ADR 0313). It is loaded at the first request to a cluster, never before.

/** One cluster as one user of a kubeconfig sees it. */
export interface Access {
  /** Without a slash at its end. */
  readonly server: string;
  /** Certificates, headers and a proxy's agent of a request; fetched anew where a token has expired. */
  readonly requestOptions: () => Promise<RequestOptions>;
}

/** `kubeconfig`: its JSON; `folder`: where its relative paths begin. Rejects with the library's own errors. */
export function openAccess(kubeconfig: string, { folder, context }: { folder: string; context: string }): Access {
  const config = new KubeConfig();
  config.loadFromString(kubeconfig);
  config.makePathsAbsolute(folder);
  config.setCurrentContext(context);
  const server = config.getCurrentCluster()?.server;
  if (server === undefined) throw new Error(`no cluster for the context ${context}`);
  return {
    server,
    requestOptions: async () => {
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options as Parameters<KubeConfig["applyToHTTPSOptions"]>[0]);
      return options;
    },
  };
}
