import { Agent, request } from "node:https";
import type { Credentials } from "#api/client.ts";

/** The one client of all contenders: JSON posted over TLS 1.3 with a certificate, on connections that are kept. */
export interface JsonClient {
  /** @throws Error when the answer is not 200 */
  readonly post: (path: string, body: object) => Promise<void>;
  readonly close: () => void;
}

export function openJsonClient(host: string, port: number, { ca, cert, key }: Credentials): JsonClient {
  const agent = new Agent({
    ca,
    cert,
    key,
    keepAlive: true,
    maxSockets: Infinity,
    maxFreeSockets: Infinity,
    minVersion: "TLSv1.3",
  });
  return {
    post: (path, body) =>
      new Promise((resolve, reject) => {
        const text = JSON.stringify(body);
        const headers = { "content-type": "application/json", "content-length": text.length };
        const sent = request({ agent, host, port, method: "POST", path, headers }, (response) => {
          let said = "";
          response.setEncoding("utf8").on("data", (chunk: string) => (said += chunk));
          response.once("end", () => {
            if (response.statusCode === 200) resolve();
            else reject(new Error(`${path}: ${response.statusCode} ${said}`));
          });
          response.once("error", reject);
        });
        sent.once("error", reject);
        sent.end(text);
      }),
    close: () => agent.destroy(),
  };
}
