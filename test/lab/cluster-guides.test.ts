import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Lab } from "#lab/lab.ts";
import { openBastion, type Bastion } from "#support/deploy.ts";
import { installPage, GuideFollower, shownNames } from "#support/follow-guide.ts";
import { readGuides } from "#support/transcripts.ts";
import { ownLab } from "#support/own-lab.ts";

describe("the guides of docs/cluster-install.md that add machines, on real nodes", function () {
  this.timeout(900_000);
  let lab: Lab;
  let bastion: Bastion;
  let page: GuideFollower;

  before(async () => {
    lab = await ownLab();
    const made = await lab.up(shownNames.map((name) => ({ name, kind: "debian" as const, nix: true, disks: ["64M"] })));
    bastion = await openBastion({
      "roster/nodes.yaml": `defaults: { identityFile: ${made[0]?.identityFile ?? ""} }\nnodes: {}\n`,
    });
    await writeFile(join(bastion.project, "passphrase"), "correct horse battery staple\n", { mode: 0o600 });
    page = new GuideFollower(bastion, made);
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  for (const { title, steps, needs, files } of readGuides(installPage))
    if (needs === "lab")
      it(title, async () => {
        for (const [name, text] of files)
          await writeFile(
            join(bastion.project, name),
            text.replaceAll(/[^\s"]+/g, (word) => page.toReal(word)),
          );
        for (const step of steps) await page.follow(step);
      });
});
