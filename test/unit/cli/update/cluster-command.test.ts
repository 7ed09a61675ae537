import { join } from "node:path";
import { expect } from "chai";
import { clusterCommand } from "#cli/update/cluster-command.ts";
import { attendUpdate } from "#cli/update/follow-command.ts";
import { inProject } from "#support/in-project.ts";
import { problemsOfRejection } from "#support/problems.ts";

/** Those that are not about one update that stands. */
const others = new Set(["apply", "list"]);

describe("the commands of cluster updates", () => {
  const commands = clusterCommand().commands.filter((command) => !others.has(command.name()));

  it("take an update by its name, or by -f with its manifest", () => {
    const names = ["approve", "attend", "cancel", "get", "plan", "promote", "remove", "rollback", "takeover"];
    expect(commands.map((command) => command.name()).toSorted()).to.deep.equal(names);
    for (const command of commands) {
      expect(
        command.registeredArguments.map(({ required }) => required),
        command.name(),
      ).to.deep.equal([false]);
      expect(
        command.options.map(({ short }) => short),
        command.name(),
      ).to.include("-f");
    }
  });

  it("attend: wants one update, and reads its name from the manifest", async () => {
    const problem = async (given?: string, filename: readonly string[] = []): Promise<string | undefined> =>
      (await problemsOfRejection(attendUpdate(given, { filename, output: "table" })))[0];
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
