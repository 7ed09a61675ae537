import { connect } from "node:tls";
import { identityOf } from "#pki/identity.ts";
import type { Endpoint } from "./endpoint.ts";

const patienceMs = 5_000;

/**
 * The cluster that a controller at this endpoint names in its certificate, which nothing here verifies; undefined where no controller
 * answers. For an operator without a CA: nothing is sent.
 */
export function controllerAt({ host, port }: Endpoint): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, rejectUnauthorized: false });
    const end = (cluster?: string): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(cluster);
    };
    const timer = setTimeout(end, patienceMs);
    socket.on("error", () => end());
    socket.once("close", () => end());
    socket.once("secureConnect", () => {
      const certificate = socket.getPeerX509Certificate();
      try {
        const shown = certificate && identityOf(certificate, "server");
        end(shown?.role === "controller" ? shown.cluster : undefined);
      } catch {
        end();
      }
    });
  });
}
