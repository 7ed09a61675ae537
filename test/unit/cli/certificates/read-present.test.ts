import { expect } from "chai";
import { readPresent } from "#cli/certificates/rotate-controller.ts";
import { createTestCluster, issueTo, type TestCluster } from "#support/cluster.ts";
import { problemsIn } from "#support/problems.ts";

const id = "0b5b5b52-7c1e-4f0e-9a50-0d8a3b0f4e11";
const dayMs = 86_400_000;

describe("the present certificate of a controller", () => {
  let cluster: TestCluster;
  let other: TestCluster;
  before(async () => ([cluster, other] = await Promise.all([createTestCluster(), createTestCluster()])));
  after(() => Promise.all([cluster.remove(), other.remove()]));

  it("is accepted also if the end of its sub-CA shortened its life", () => {
    const end = cluster.authority.certificate.validToDate.getTime();
    for (const now of [Date.now(), end - 20 * dayMs]) {
      const { cert } = issueTo(cluster.authority, "controller", id, { now, addresses: ["192.0.2.11"] });
      expect(readPresent(cert, id, cluster.authority).names).to.deep.equal({
        host: "127.0.0.1",
        addresses: ["192.0.2.11"],
      });
    }
  });

  it("is refused for another controller, and from another cluster", () => {
    const { cert } = issueTo(cluster.authority, "controller", id);
    expect(problemsIn(() => readPresent(cert, `1${id.slice(1)}`, cluster.authority))[0]).to.contain(
      "PKI_PROOF_INVALID",
    );
    expect(problemsIn(() => readPresent(cert, id, other.authority))[0]).to.contain("PKI_PROOF_INVALID");
  });
});
