import { expect } from "chai";
import type { UpdateView } from "#api/update-schemas.ts";
import { createTestCluster, type TestCluster } from "#support/cluster.ts";
import { TestProject } from "#support/kcore.ts";
import { signUpdate } from "#support/signed-update.ts";
import { openAttendant } from "../../../../src/cli/update/attendant.ts";

describe("what a controller in wrong hands can ask of the bastion", () => {
  let cluster: TestCluster;
  let project: TestProject;
  before(async () => {
    cluster = await createTestCluster();
    project = new TestProject();
  });
  after(async () => {
    await project.remove();
    await cluster.remove();
  });

  it("is no more drains at once than may be down as the bastion signed it", async () => {
    const spec = {
      target: { version: "1.0.0" },
      selector: { allNodes: true },
      drain: { enabled: true, command: "exec sleep 60" },
    };
    const signed = signUpdate(cluster, "u1", { spec });
    const said: string[] = [];
    const attendant = await openAttendant({
      cluster: {
        context: "lab",
        folder: project.path,
        rootPem: cluster.authority.rootPem,
        cluster: cluster.authority.cluster,
        ask: () => Promise.resolve({ address: "192.0.2.1" }),
      } as never,
      name: "u1",
      project: project.project,
      say: (text) => said.push(text),
    });
    const nodeStatus = ["n1", "n2", "n3"].map((hostname, at) => ({
      id: `${at}`,
      hostname,
      dc: "DC1",
      hook: "drain",
      seq: 1,
    }));
    const view = { generation: 1, signed, nodeStatus, spec: { strategy: { maxUnavailable: 1000 } } };
    attendant?.look(view as unknown as UpdateView);
    expect(said).to.deep.equal(["n1: drain is begun"]);
    expect(attendant?.isNeeded(view as unknown as UpdateView)).to.equal(true);
    await attendant?.close();
  });
});
