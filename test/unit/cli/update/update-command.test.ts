import { join } from "node:path";
import { expect } from "chai";
import { updateCommand } from "#cli/update/update-command.ts";
import { runUpdateHooks } from "#cli/update/follow-update.ts";
import { inProject } from "#support/in-project.ts";
import { problemsOfRejection } from "#support/problems.ts";

/** Commands that do not concern one existing update. */
const others = new Set(["apply", "list"]);

describe("the commands of cluster updates", () => {
  const cluster = updateCommand().commands.find((command) => command.name() === "cluster");
  const commands = (cluster?.commands ?? []).filter((command) => !others.has(command.name()));

  it("take an update by its name, or by -f with its manifest", () => {
    const names = ["approve", "cancel", "get", "plan", "promote", "remove", "rollback", "run-hooks", "takeover"];
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

  it("run-hooks: wants one update, and reads its name from the manifest", async () => {
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
