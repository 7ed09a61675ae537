import { Agent, request } from "node:https";

/** An answer; `status` 0 means that none came, so that the outcome is unknown. */
export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Client {
  readonly get: (path: string) => Promise<Answer>;
  readonly post: (path: string, body?: object) => Promise<Answer>;
  readonly close: () => void;
}

const patience = 4_000;

/** One operator's client of one controller: mTLS, TLS 1.3, kept connections. */
export function openClient(
  { host, port }: { readonly host: string; readonly port: number },
  credentials: { readonly ca: string; readonly cert: string; readonly key: string },
): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 16, minVersion: "TLSv1.3", ...credentials });
  const ask = (method: string, path: string, body?: object): Promise<Answer> =>
    new Promise((resolve) => {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const headers =
        text === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
      const nobodyKnows = (error: Error): void => resolve({ status: 0, body: { message: error.message } });
      const sent = request({ agent, host, port, method, path, headers, timeout: patience });
      const timer = setTimeout(() => sent.destroy(new Error(`no answer within ${patience} ms`)), patience);
      sent.once("close", () => clearTimeout(timer));
      sent.once("error", nobodyKnows);
      sent.once("response", (response) => {
        let reply = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (reply += chunk));
        response.once("error", nobodyKnows);
        response.once("close", () => {
          if (!response.complete) return nobodyKnows(new Error("the answer was cut off"));
          resolve({ status: response.statusCode ?? 0, body: parse(reply) });
        });
      });
      sent.end(text);
    });
  return {
    get: (path) => ask("GET", path),
    post: (path, body = {}) => ask("POST", path, body),
    close: () => agent.destroy(),
  };
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { message: text.slice(0, 300) };
  }
}
