import { X509Certificate } from "node:crypto";
import { request } from "node:https";
import type { Socket } from "node:net";
import { checkServerIdentity, type PeerCertificate, type TLSSocket } from "node:tls";
import type { Credentials } from "#api/client.ts";
import type { Endpoint } from "#api/endpoint.ts";
import { methods, replicationProtocol } from "#api/methods.ts";
import { identityOf } from "#pki/identity.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";

/** The controller that answered, by its certificate. */
export interface Answered {
  readonly id: string;
  /** SHA-256 of its public key. */
  readonly key: string;
  readonly socket: Socket;
  readonly head: Buffer;
}

/**
 * One round trip takes less. After a cut, the kernel's next try would be up to four seconds away, and eight, a new
 * connection's is not.
 */
const longestConnect = 2_000;

/**
 * Connects to another controller and switches to the replication protocol: TLS 1.3, no session resumed, a server that is
 * a controller of our cluster, for the host that was dialled (S-10). Whether this very key is a member's is the caller's question.
 */
export function dialController({
  endpoint,
  credentials,
  cluster,
  timeoutMs,
}: {
  readonly endpoint: Endpoint;
  readonly credentials: Credentials;
  readonly cluster: string;
  readonly timeoutMs: number;
}): Promise<Answered> {
  return new Promise((resolve, reject) => {
    let who: { readonly id: string; readonly key: string } | undefined;
    const sent = request({
      ...credentials,
      host: endpoint.host,
      port: endpoint.port,
      path: methods.replicate.path,
      agent: false,
      minVersion: "TLSv1.3",
      headers: { connection: "upgrade", upgrade: replicationProtocol },
      checkServerIdentity: (host: string, peer: PeerCertificate) => {
        const problem = checkServerIdentity(host, peer);
        if (problem) return problem;
        try {
          who = readController(new X509Certificate(peer.raw), cluster);
          return undefined;
        } catch (error) {
          return error instanceof Error ? error : new Error(String(error));
        }
      },
    });
    const giveUpAfter = (ms: number): NodeJS.Timeout =>
      setTimeout(() => sent.destroy(new Error(`no answer within ${Math.round(ms)} ms`)), ms);
    const timer = giveUpAfter(timeoutMs);
    const connecting = giveUpAfter(Math.min(timeoutMs, longestConnect));
    sent.once("socket", (socket) => socket.once("connect", () => clearTimeout(connecting)));
    const fail = (error: Error): void => {
      clearTimeout(timer);
      clearTimeout(connecting);
      reject(error);
    };
    sent.once("error", fail);
    sent.once("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        if (text.length < 4096) text += chunk;
      });
      response.once("close", () => fail(new Error(`it refused: ${response.statusCode} ${text.slice(0, 300)}`)));
    });
    sent.once("upgrade", (_response, socket: Socket, head: Buffer) => {
      clearTimeout(timer);
      socket.setNoDelay(true);
      socket.setTimeout(0);
      if (who && (socket as TLSSocket).authorized) resolve({ ...who, socket, head });
      else socket.destroy(new Error("the peer did not prove who it is"));
    });
    sent.end();
  });
}

function readController(certificate: X509Certificate, cluster: string): { readonly id: string; readonly key: string } {
  const identity = identityOf(certificate, "server");
  if (identity.role !== "controller") throw new Error(`it is a ${identity.role}, not a controller`);
  if (identity.cluster !== cluster) throw new Error(`it belongs to the cluster “${identity.cluster}”`);
  return { id: identity.id, key: keyFingerprint(publicDer(certificate.publicKey)) };
}
