import type { IncomingMessage } from "node:http";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { firstCertificate, knowBastionCas } from "#pki/chain.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import { operatorGuard, type KeyAnswers } from "#cli/web/operator-guard.ts";
import { createTestCluster, issueTo, type TestCluster } from "#support/cluster.ts";

describe("the authentication of kcore web --listen", () => {
  let cluster: TestCluster;
  let key: string;
  before(async () => {
    cluster = await createTestCluster();
    key = keyFingerprint(publicDer(firstCertificate(cluster.operator.cert).publicKey));
  });
  after(() => cluster.remove());

  const ask = (pem: string, answers: KeyAnswers, { own = key, authorized = true } = {}) => {
    const bastion = knowBastionCas(cluster.operator.ca, cluster.operator.cert);
    const guard = operatorGuard({ cluster: "lab", bastion, own, answers: () => answers });
    const socket = { authorized, getPeerX509Certificate: () => firstCertificate(pem) };
    return guard({ socket } as unknown as IncomingMessage);
  };
  const known: KeyAnswers = { revoked: new Set(["0".repeat(64)]) };

  it("admits an operator whose key is not revoked; before the controllers' first answer only this machine's operator", () => {
    expect(ask(cluster.operator.cert, known, { own: "" })).to.deep.equal({ kind: "admitted" });
    expect(ask(cluster.operator.cert, {})).to.deep.equal({ kind: "admitted" });
    expect(ask(cluster.operator.cert, {}, { own: "" })).to.include({ kind: "refused", status: 503 });
  });

  it("refuses a revoked key, also this machine's, and everyone if the controllers refuse this machine", () => {
    expect(ask(cluster.operator.cert, { revoked: new Set([key]) })).to.include({ kind: "refused", status: 403 });
    expect(ask(cluster.operator.cert, { refusal: "no" })).to.include({ kind: "refused", status: 503 });
  });

  it("refuses other roles, other CAs and expired certificates", () => {
    for (const role of ["node", "controller"] as const)
      expect(ask(issueTo(cluster.authority, role, randomUUID()).cert, known)).to.include({
        kind: "refused",
        status: 403,
      });
    expect(ask(cluster.operator.cert, known, { authorized: false })).to.include({ kind: "refused", status: 403 });
    const old = issueTo(cluster.authority, "node", randomUUID(), { now: Date.now() - 200 * 86_400_000 });
    expect(ask(old.cert, known)).to.include({ kind: "refused", status: 401 });
  });
});
