import { expect } from "chai";
import { waitFor } from "#engine/modules/wait-for.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("wait.for", () => {
  it("takes exactly one thing to wait for, and tries for a minute", () => {
    for (const args of [{}, { path: "/a", unit: "b" }]) expect(waitFor.args.safeParse(args).success).to.equal(false);
    expect(stepOf(waitFor, { path: "/a" }).retry).to.deep.equal({ attempts: 31, interval: 2 });
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`looks at paths, commands and units on ${shell}`, async () => {
      const outcome = async (args: object): Promise<string> =>
        (
          await runStepOn(shell, stepOf(waitFor, args), {
            bin: { systemctl: 'echo "ActiveState=activating"' },
            dryRun: true,
          })
        ).outcome;
      expect(await outcome({ path: "/etc" })).to.equal("ok");
      expect(await outcome({ path: "/not/there" })).to.equal("failed");
      expect(await outcome({ absent: "/not/there" })).to.equal("ok");
      expect(await outcome({ absent: "/etc" })).to.equal("failed");
      expect(await outcome({ command: "exit 0" })).to.equal("ok");
      expect(await outcome({ command: "exit 3" })).to.equal("failed");
      expect(await outcome({ unit: "demo" })).to.equal("failed");
    });
});
