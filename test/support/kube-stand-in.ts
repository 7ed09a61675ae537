import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

/** A request to the stand-in. */
export interface KubeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A prepared answer; a function gets the response itself. */
export type PreparedAnswer =
  { readonly status?: number; readonly body: unknown } | ((response: ServerResponse) => void);

/** A TLS server with prepared answers, for behaviour that no single version of a real API server has. It refuses other requests. */
export class KubeStandIn {
  /** All requests so far. */
  readonly asked: KubeRequest[] = [];
  answer: (request: KubeRequest) => PreparedAnswer | undefined = () => undefined;
  readonly #server: Server;
  readonly #cert: string;

  private constructor(server: Server, cert: string) {
    this.#server = server;
    this.#cert = cert;
  }

  /** `names`: the alternative names in the server's certificate. */
  static async start(names = "IP:127.0.0.1"): Promise<KubeStandIn> {
    const folder = mkdtempSync(join(tmpdir(), "kcore-kube-stand-in-"));
    const [key, cert] = [join(folder, "key"), join(folder, "cert")];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert];
    const subject = ["-subj", "/CN=stand-in", "-days", "1", "-addext", `subjectAltName=${names}`];
    execFileSync("openssl", ["req", "-x509", ...kind, ...subject], { stdio: "ignore" });
    const pem = readFileSync(cert, "utf8");
    const server = createServer({ key: readFileSync(key), cert: pem });
    rmSync(folder, { recursive: true });
    const standIn = new KubeStandIn(server, pem);
    server.on("request", (request, response) => void standIn.#serve(request, response));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return standIn;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  kubeconfig({ path = "" } = {}): string {
    const cluster = {
      server: `${this.url}${path}`,
      "certificate-authority-data": Buffer.from(this.#cert).toString("base64"),
    };
    return JSON.stringify({
      "current-context": "c",
      clusters: [{ name: "c", cluster }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      users: [{ name: "u", user: { token: "stand-in-token" } }],
    });
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "", headers } = request;
    const asked = { method, path: url, headers, body: await text(request) };
    this.asked.push(asked);
    const answer = this.answer(asked) ?? { status: 501, body: `nobody taught it ${method} ${url}` };
    if (typeof answer === "function") return answer(response);
    response.writeHead(answer.status ?? 200);
    response.end(typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body));
  }
}
