import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openLab, type Lab } from "#lab/lab.ts";
import { on, openBastion, type Bastion } from "#support/deploy.ts";
import { clusterPage, GuideFollower, shownNames } from "#support/follow-guide.ts";
import { readGuides } from "#support/transcripts.ts";

const labName = "cluster-guides";

describe("the guides of docs/cluster.md that add machines, on real nodes", function () {
  this.timeout(900_000);
  let lab: Lab;
  let bastion: Bastion;
  let page: GuideFollower;

  before(async () => {
    lab = await openLab({ name: labName });
    await lab.down();
    const made = await lab.up(shownNames.map((name) => ({ name, kind: "debian" as const, disks: ["64M"] })));
    // All at once, what the deployments would otherwise install one after the other.
    const packages = "apt-get -q update && apt-get -qy install gdisk nix-bin nix-setup-systemd openssl";
    await Promise.all(made.map((node) => on(node, packages, 600_000)));
    bastion = await openBastion({
      "roster/nodes.yaml": `defaults: { identityFile: ${made[0]?.identityFile ?? ""} }\nnodes: {}\n`,
    });
    await writeFile(join(bastion.project, "passphrase"), "correct horse battery staple\n", { mode: 0o600 });
    page = new GuideFollower(bastion, made);
  });
  after(async () => {
    await bastion?.remove();
    await (await openLab({ name: labName })).down();
  });

  for (const { title, steps, needs, files } of readGuides(clusterPage))
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
