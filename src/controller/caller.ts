import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { KcoreError } from "#errors/problem.ts";
import { identityOf } from "#pki/identity.ts";
import type { Identity } from "#pki/identity.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import type { Caller } from "./nodes.ts";
import { Refused } from "./refused.ts";

export type KnownCaller = Caller & { readonly identity: Identity };

/**
 * Who asks, from the connection's certificate alone, looked at anew for each request (S-10): TLS has verified it
 * against our CA when the connection was made; since then it may have expired.
 */
export function callerOf(request: IncomingMessage, cluster: string, now: number): KnownCaller {
  const socket = request.socket as TLSSocket;
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (!certificate) throw new Refused(401, "API_DENIED", "no client certificate of this cluster's CA");
  let identity: Identity;
  try {
    identity = identityOf(certificate, "client");
  } catch (error) {
    if (error instanceof KcoreError) throw new Refused(403, "API_DENIED", error.message);
    throw error;
  }
  if (identity.cluster !== cluster) {
    throw new Refused(
      403,
      "API_DENIED",
      `the certificate is for the cluster “${identity.cluster}”, this is “${cluster}”`,
    );
  }
  const expires = certificate.validToDate.getTime();
  if (expires <= now) throw new Refused(401, "API_DENIED", "the client certificate has expired");
  return {
    identity,
    id: identity.id,
    key: keyFingerprint(publicDer(certificate.publicKey)),
    certificateExpiresAt: expires,
  };
}
