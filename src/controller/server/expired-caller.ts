import type { X509Certificate } from "node:crypto";
import type { Server } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { graceEnd, isInGrace, lateRenewalProtocol } from "#api/late-renewal.ts";
import type { MethodName } from "#api/methods.ts";
import { firstCertificate, isIssuedBy } from "#pki/chain.ts";
import { Refused } from "../cluster/refused.ts";
import { readCaller, type KnownCaller } from "./caller.ts";

/** The only methods for a node whose certificate has expired. */
export const lateRenewalMethods: ReadonlySet<MethodName> = new Set(["renewChallenge", "renew"]);
/** The longest wait for a ClientHello. */
const helloMs = 5_000;
/** The longest connection of a late renewal. */
const renewalMs = 30_000;
/** The callers by connection: Node returns the issuers of a peer's certificate at the first call only. */
const callers = new WeakMap<TLSSocket, KnownCaller>();

/**
 * Routes connections whose ClientHello offers the protocol of late renewals to `late`, all others to `server`. The ClientHello is not
 * encrypted (TLS 1.3, RFC 8446, 4.1.2); a client that offers it without need meets the stricter checks of {@link expiredCallerOf}.
 */
export function routeLateRenewals(server: Server, late: Server): void {
  const usual = server.listeners("connection") as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const timer = setTimeout(() => socket.destroy(), helloMs);
    const failed = (): void => void socket.destroy();
    socket.once("error", failed);
    socket.once("close", () => clearTimeout(timer));
    socket.once("readable", () => {
      clearTimeout(timer);
      socket.off("error", failed);
      const hello = socket.read() as Buffer | null;
      if (hello === null) return void socket.destroy();
      socket.unshift(hello);
      if (hello.includes(lateRenewalProtocol)) late.emit("connection", socket);
      else for (const listener of usual) listener.call(server, socket);
    });
  });
}

/**
 * Closes connections of the late server after 30 s, enough for a renewal's two requests. Node enforces the timeouts of requests only
 * on servers that listen, and this one does not.
 */
export function endLateConnections(late: Server): void {
  late.on("connection", (socket: Socket) => {
    const timer = setTimeout(() => socket.destroy(), renewalMs).unref();
    socket.once("close", () => clearTimeout(timer));
  });
}

/**
 * The caller on a connection of the late server, which accepts certificates that OpenSSL refuses: a node of this cluster whose certificate
 * is valid but for its end, at most 30 days ago. TLS has proven that the caller has the key. access.ts checks, as for any other caller,
 * that the key is registered and not revoked, and the node approved.
 * @throws Refused 401, 403
 */
export function expiredCallerOf(
  socket: TLSSocket,
  { cluster, rootPem, now }: { readonly cluster: string; readonly rootPem: string; readonly now: number },
): KnownCaller {
  const known = callers.get(socket);
  if (known) {
    if (known.certificateExpiresAt > now) return known;
    throw new Refused(401, "API_DENIED", "the certificate expired more than 30 days ago");
  }
  const leaf = socket.getPeerX509Certificate();
  if (!leaf) throw new Refused(401, "API_DENIED", "no client certificate");
  const problem = leafProblem(leaf, firstCertificate(rootPem), now);
  if (problem !== undefined) throw new Refused(401, "API_DENIED", `the certificate ${problem}`);
  const caller = readCaller(leaf, cluster);
  if (caller.identity.role !== "node")
    throw new Refused(403, "API_DENIED", "only a node renews a certificate that has expired");
  // The connection may stay open until the grace period ends.
  const lasting = { ...caller, certificateExpiresAt: graceEnd(leaf.validToDate) };
  callers.set(socket, lasting);
  return lasting;
}

/** The fault of a certificate, to follow its name. A full check: OpenSSL reports only one fault, and the expiry could hide another one. */
function leafProblem(leaf: X509Certificate, root: X509Certificate, now: number): string | undefined {
  const issuer = leaf.issuerCertificate;
  const isSigned = issuer !== undefined && issuer.ca && isIssuedBy(leaf, issuer);
  if (!isSigned) return "is not signed by a CA that came with it";
  if (!isIssuedBy(issuer, root)) return "is not of this cluster's CA";
  if (issuer.validToDate.getTime() <= now) return "was issued by a CA that has expired";
  if (leaf.validFromDate.getTime() > now) return "is not valid yet";
  return isInGrace(leaf.validToDate, now) ? undefined : "has not expired, or more than 30 days ago";
}
