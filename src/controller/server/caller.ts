import type { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { KcoreError } from "#errors/problem.ts";
import { decodeIssuer, type BastionCas } from "#pki/chain.ts";
import { identityOf, type MemberIdentity } from "#pki/identity.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import type { Caller } from "../cluster/nodes.ts";
import { Refused } from "../cluster/refused.ts";

/** A caller as its connection's certificate proves it. */
export type KnownCaller = Caller & {
  readonly identity: MemberIdentity;
  readonly certificate: X509Certificate;
  /** Whether the root itself issued the certificate. */
  readonly isOfRoot?: boolean;
};

// A connection's certificate never changes, so it is read once; the caller's rights are checked at each request.
const checkedCallers = new WeakMap<TLSSocket, KnownCaller>();
const certificateHolders = new WeakMap<TLSSocket, KnownCaller>();

/** The holder of a connection's certificate, when the handshake is done; the issuer is not checked. @throws Refused 401, 403 */
export function holderOn(socket: TLSSocket, cluster: string): KnownCaller {
  const known = certificateHolders.get(socket);
  if (known) return known;
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (!certificate) throw new Refused(401, "API_DENIED", "no client certificate of this cluster's CA");
  const caller = readCaller(certificate, cluster);
  certificateHolders.set(socket, caller);
  return caller;
}

/**
 * The caller on a connection, whose certificate TLS verified against the cluster's CA in the handshake. The certificate's end
 * is checked at every call; `access.ts` checks the key.
 * @throws Refused 401, 403
 */
export function callerOf(
  socket: TLSSocket,
  {
    cluster,
    bastion,
    issuer,
    now,
  }: {
    readonly cluster: string;
    readonly bastion: BastionCas;
    /** The issuer's certificate from the request's header (`issuerHeader`). */
    readonly issuer: string | undefined;
    readonly now: number;
  },
): KnownCaller {
  let caller = checkedCallers.get(socket);
  if (!caller) {
    const holder = holderOn(socket, cluster);
    caller = { ...holder, isOfRoot: bastion.isOfRoot(holder.certificate) };
    checkIssuer(caller, bastion, issuer);
    checkedCallers.set(socket, caller);
  }
  if (caller.certificateExpiresAt <= now) throw new Refused(401, "API_DENIED", "the client certificate has expired");
  return caller;
}

/** Checks that the bastion issued the certificate of an operator or controller (ADR 0517), or a controller's own sub-CA renewed it (ADR 0516). @throws Refused 403 */
function checkIssuer({ identity, certificate }: KnownCaller, bastion: BastionCas, issuer: string | undefined): void {
  if (identity.role === "node") return;
  const refusal = bastion.refusalOf(certificate, decodeIssuer(issuer));
  if (refusal === undefined) return;
  const what = `the certificate of ${identity.role} ${identity.id} ${refusal}`;
  throw new Refused(
    403,
    "API_DENIED",
    what,
    "ask with a kcore as new as the controllers; or on the bastion: kcore rotate certs",
  );
}

/** The caller that a certificate of this cluster names. @throws Refused 403 */
export function readCaller(certificate: X509Certificate, cluster: string): KnownCaller {
  let identity: MemberIdentity;
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
  return {
    identity,
    certificate,
    id: identity.id,
    key: keyFingerprint(publicDer(certificate.publicKey)),
    serial: certificate.serialNumber.toLowerCase(),
    certificateExpiresAt: certificate.validToDate.getTime(),
  };
}
