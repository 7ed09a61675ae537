import { dirname } from "node:path";
import { mkdir, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { contextHomeOf } from "#actions/cluster-context.ts";
import { pkiCheckPassphrase } from "#actions/pki-check-passphrase.ts";
import { KcoreError } from "#errors/problem.ts";
import { createCluster } from "#pki/cluster.ts";
import { issuedFile } from "#pki/issued.ts";
import { actionContext } from "#support/action-context.ts";
import { cheapCost, passphrase } from "#support/cluster.ts";
import { codeOf } from "#support/rejection.ts";
import { nodeEntry } from "#support/runs.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("pki.checkPassphrase", () => {
  const home = folderOfEachTest("check");
  const n1 = nodeEntry("n1");
  let asked = 0;
  const contextOf = (fields: Parameters<typeof actionContext>[0] = {}) =>
    actionContext({
      home: home(),
      nodes: new Map([["n1", n1]]),
      targets: ["n1"],
      passphrase: () => {
        asked += 1;
        return Promise.resolve(passphrase);
      },
      ...fields,
    });

  it("asks for the passphrase if a target has no certificate yet, and skips a question that no terminal answers", async () => {
    expect(await codeOf(pkiCheckPassphrase.run({}, contextOf()))).to.equal("PKI_CONTEXT_UNKNOWN");
    expect(asked, "without a cluster").to.equal(0);
    const plan = { ...contextHomeOf({ home: home() }), context: "default", controllers: [], operator: "ops" };
    const { folder } = await createCluster({ ...plan, passphrase, now: Date.now(), cost: cheapCost });
    await pkiCheckPassphrase.run({}, contextOf());
    expect(asked).to.equal(1);
    const nobody = new KcoreError({ code: "QUESTION_UNANSWERED", message: "nobody is there" });
    await pkiCheckPassphrase.run({}, contextOf({ passphrase: () => Promise.reject(nobody) }));
    await pkiCheckPassphrase.plan({}, contextOf());
    expect(asked, "a dry run issues nothing").to.equal(1);
    expect(await codeOf(pkiCheckPassphrase.run({}, contextOf({ givenPassphrase: "tpyo" })))).to.equal(
      "PKI_PASSPHRASE_WRONG",
    );
    const file = issuedFile(folder, n1.id, "node");
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, "");
    await pkiCheckPassphrase.run({}, contextOf());
    expect(asked, "all targets have certificates").to.equal(1);
  });
});
