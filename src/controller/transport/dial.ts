import { X509Certificate } from "node:crypto";
import { request } from "node:https";
import type { Socket } from "node:net";
import { checkServerIdentity, type PeerCertificate, type TLSSocket } from "node:tls";
import type { Credentials } from "#api/client.ts";
import type { ApiEndpoint } from "#api/endpoint.ts";
import { issuerHeaders } from "#api/issuer-header.ts";
import { methods, replicationProtocol } from "#api/methods.ts";
import { issuerOf, type BastionCas } from "#pki/chain.ts";
import { identityOf } from "#pki/identity.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import type { PeerRefusal } from "../replica/refusals.ts";

/** The controller that answered, as its certificate proves it, and the stream to it. */
export interface DialledController {
  readonly id: string;
  /** SHA-256 of the controller's public key. */
  readonly key: string;
  readonly socket: Socket;
  readonly head: Buffer;
}

/** The refusal of one of two controllers by the other: the peer's answer, or this controller's objection to the peer's identity. */
export class DialRefused extends Error implements PeerRefusal {
  override readonly name = "DialRefused";
  readonly by: "us" | "peer";
  readonly code: string;

  constructor(by: "us" | "peer", code: string, message: string) {
    super(message);
    this.by = by;
    this.code = code;
  }
}

/**
 * The longest time for the TCP handshake, ms. After a network cut the kernel repeats a SYN only after 4 s and more; a new attempt sends
 * one at once.
 */
const longestConnect = 2_000;

/**
 * Connects to another controller and switches to the replication protocol: TLS 1.3 without resumption, with a server certificate
 * of a controller of this cluster for the dialled host (S-10). The caller checks that the key is a member's.
 * @throws DialRefused, or another error if the controller is out of reach
 */
export function dialController({
  endpoint,
  credentials,
  cluster,
  bastion,
  timeoutMs,
}: {
  readonly endpoint: ApiEndpoint;
  readonly credentials: Credentials;
  readonly cluster: string;
  readonly bastion: BastionCas;
  readonly timeoutMs: number;
}): Promise<DialledController> {
  return new Promise((resolve, reject) => {
    let who: { readonly id: string; readonly key: string } | undefined;
    const sent = request({
      ...credentials,
      host: endpoint.host,
      port: endpoint.port,
      path: methods.replicate.path,
      agent: false,
      minVersion: "TLSv1.3",
      headers: { connection: "upgrade", upgrade: replicationProtocol, ...issuerHeaders(credentials.cert) },
      checkServerIdentity: (host: string, peer: PeerCertificate) => {
        const problem = checkServerIdentity(host, peer);
        if (problem) return new DialRefused("us", "NOT_REGISTERED", problem.message);
        try {
          who = readController(peer, cluster, bastion);
          return undefined;
        } catch (error) {
          return new DialRefused("us", "NOT_REGISTERED", error instanceof Error ? error.message : String(error));
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
      response.once("close", () => fail(refusalIn(text, response.statusCode)));
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

function refusalIn(text: string, status: number | undefined): Error {
  try {
    const { code, message } = JSON.parse(text) as { readonly code?: unknown; readonly message?: unknown };
    if (typeof code === "string" && typeof message === "string")
      return new DialRefused("peer", code.slice(0, 64), message.slice(0, 1024));
  } catch {
    // An answer that is no refusal of a controller.
  }
  return new Error(`it refused: ${status} ${text.slice(0, 300)}`);
}

function readController(
  peer: PeerCertificate,
  cluster: string,
  bastion: BastionCas,
): { readonly id: string; readonly key: string } {
  const certificate = new X509Certificate(peer.raw);
  const identity = identityOf(certificate, "server");
  if (identity.role !== "controller") throw new Error(`it is a ${identity.role}, not a controller`);
  if (identity.cluster !== cluster) throw new Error(`it belongs to the cluster “${identity.cluster}”`);
  const refusal = bastion.refusalOf(certificate, issuerOf(peer));
  if (refusal !== undefined) throw new Error(`its certificate ${refusal}`);
  return { id: identity.id, key: keyFingerprint(publicDer(certificate.publicKey)) };
}
