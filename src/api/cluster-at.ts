import { connect } from "node:tls";
import { identityOf } from "#pki/identity.ts";
import type { ApiEndpoint } from "./endpoint.ts";

const limitMs = 5_000;

/**
 * The cluster's name in the certificate of the controller at this endpoint, unverified; undefined if no controller answers within 5 s.
 * For an operator without a CA: no request is sent.
 */
export function clusterAt({ host, port }: ApiEndpoint): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, rejectUnauthorized: false });
    const end = (cluster?: string): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(cluster);
    };
    const timer = setTimeout(end, limitMs);
    socket.on("error", () => end());
    socket.once("close", () => end());
    socket.once("secureConnect", () => {
      const certificate = socket.getPeerX509Certificate();
      try {
        const identity = certificate && identityOf(certificate, "server");
        end(identity?.role === "controller" ? identity.cluster : undefined);
      } catch {
        end();
      }
    });
  });
}
