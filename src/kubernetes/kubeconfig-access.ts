import type { RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node/dist/config.js";

// The only file that imports @kubernetes/client-node (ADR 0313). It is loaded when the first cluster is opened, never before.

/** The way to a cluster's API server as a user of a kubeconfig. */
export interface ClusterAccess {
  /** Without a slash at its end. */
  readonly server: string;
  /** Certificates, headers and a proxy's agent of a request; fetched anew where a token has expired. */
  readonly requestOptions: () => Promise<RequestOptions>;
}

/** `kubeconfig`: its JSON; `folder`: where its relative paths begin. @throws the library's own errors, also from `requestOptions` */
export function openAccess(
  kubeconfig: string,
  { folder, context }: { folder: string; context: string },
): ClusterAccess {
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
