import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { KcoreError } from "#errors/problem.ts";
import type { BastionCas } from "#pki/chain.ts";
import { identityOf } from "#pki/identity.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import { refuse, type Guard, type GuardDecision } from "#web/guard.ts";

export interface OperatorGuardOptions {
  readonly cluster: string;
  readonly bastion: BastionCas;
  /** The fingerprint of this machine's own operator's key, which is accepted until a controller has answered. */
  readonly own: string;
  readonly answers: () => KeyAnswers;
}

/** The controllers' answer about keys; empty until a controller has answered. */
export interface KeyAnswers {
  /** Fingerprints of the revoked keys. */
  readonly revoked?: ReadonlySet<string>;
  /** The reason why the controllers refuse this machine an answer. */
  readonly refusal?: string;
}

/** Admits browsers with an operator's certificate that the bastion issued and that is not revoked; TLS has verified its chain. */
export function operatorGuard({ cluster, bastion, own, answers }: OperatorGuardOptions): Guard {
  return ({ socket }: IncomingMessage): GuardDecision => {
    const tls = socket as TLSSocket;
    const certificate = tls.getPeerX509Certificate();
    if (!certificate)
      return refuse(
        401,
        "this page asks for an operator's certificate: docs/reading-a-run.md says how a browser gets one",
      );
    if (!tls.authorized) return refuse(403, "this certificate is not of this cluster");
    if (certificate.validToDate.getTime() <= Date.now()) return refuse(401, "this certificate has expired");
    try {
      const identity = identityOf(certificate, "client");
      if (identity.cluster !== cluster || identity.role !== "operator")
        return refuse(403, `${identity.role} ${identity.id} of ${identity.cluster} is no operator of ${cluster}`);
    } catch (error) {
      if (error instanceof KcoreError) return refuse(403, error.message);
      throw error;
    }
    const refusal = bastion.refusalOf(certificate);
    if (refusal !== undefined) return refuse(403, `this certificate ${refusal}`);
    const key = keyFingerprint(publicDer(certificate.publicKey));
    const { revoked, refusal: untold } = answers();
    if (untold !== undefined) return refuse(503, `the controllers refuse this machine's own operator: ${untold}`);
    if (revoked?.has(key)) return refuse(403, "this key was revoked");
    if (revoked === undefined && key !== own)
      return refuse(
        503,
        "no controller has said yet which keys are revoked: only this machine's own operator is let in until then",
      );
    return { kind: "admitted" };
  };
}
