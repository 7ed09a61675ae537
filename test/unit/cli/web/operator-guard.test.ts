import type { IncomingMessage } from "node:http";
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { firstCertificate, knowBastionCas } from "#pki/chain.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import { operatorGuard, type KeyAnswers } from "#cli/web/operator-guard.ts";
import { createTestCluster, issueTo, type TestCluster } from "#support/cluster.ts";

describe("The guard of kcore web --listen", () => {
  let cluster: TestCluster;
  let key: string;
  before(async () => {
    cluster = await createTestCluster();
    key = keyFingerprint(publicDer(firstCertificate(cluster.operator.cert).publicKey));
  });
  after(() => cluster.remove());

  const ask = (pem: string, told: KeyAnswers, { own = key, authorized = true } = {}) => {
    const bastion = knowBastionCas(cluster.operator.ca, cluster.operator.cert);
    const guard = operatorGuard({ cluster: "lab", bastion, own, answers: () => told });
    const socket = { authorized, getPeerX509Certificate: () => firstCertificate(pem) };
    return guard({ socket } as unknown as IncomingMessage);
  };
  const known: KeyAnswers = { revoked: new Set(["0".repeat(64)]) };

  it("lets an operator in whose key stands, and one of this machine while nobody has told of keys", () => {
    expect(ask(cluster.operator.cert, known, { own: "" })).to.deep.equal({ kind: "admitted" });
    expect(ask(cluster.operator.cert, {})).to.deep.equal({ kind: "admitted" });
    expect(ask(cluster.operator.cert, {}, { own: "" })).to.include({ kind: "refused", status: 503 });
  });

  it("refuses a revoked key, this machine's own too, and everybody where the controllers refuse this machine", () => {
    expect(ask(cluster.operator.cert, { revoked: new Set([key]) })).to.include({ kind: "refused", status: 403 });
    expect(ask(cluster.operator.cert, { refusal: "no" })).to.include({ kind: "refused", status: 503 });
  });

  it("refuses whoever is no operator, is of another CA, or whose certificate has expired", () => {
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
