import { join } from "node:path";
import { expect } from "chai";
import { runUpdateHooks } from "#cli/update/follow-update.ts";
import { inProject } from "#support/in-project.ts";
import { problemsOfRejection } from "#support/problems.ts";

describe("kcore update cluster run-hooks", () => {
  it("requires exactly one update, named as argument or by a manifest", async () => {
    const problem = async (given?: string, filename: readonly string[] = []): Promise<string | undefined> =>
      (await problemsOfRejection(runUpdateHooks(given, { filename, output: "table" })))[0];
    expect(await problem()).to.match(/^no update is named \[USAGE\]/);
    const text = `kind: ClusterUpdate
metadata: { name: u1 }
spec: { target: { version: 0.4.0 }, selector: { allNodes: true } }
`;
    await inProject({ "u1.yaml": text }, async (project) => {
      expect(await problem("u1", [join(project, "u1.yaml")])).to.match(
        /^2 updates are named, and one is wanted \[USAGE\]/,
      );
    });
  });
});
