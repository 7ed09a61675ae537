import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { runTasks } from "#base/tasks.ts";
import { fetchPack } from "#cli/pack/fetch-pack.ts";
import { foldersOf, overriddenFiles } from "#engine/project/folders.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { problemsIn, problemsOfRejection } from "#support/problems.ts";
import { inProject } from "#support/in-project.ts";

const shipped = shippedRoot();

describe("names of files that kcore ships", () => {
  for (const name of ["kcore", "nix", "system", "update", "certs", "cluster"])
    it(`are refused as the name of a pack: ${name}`, async () => {
      await inProject({ [`packs/${name}/pack.yaml`]: `name: ${name}\n` }, async (project) => {
        const refused = `no pack can be called “${name}”: kcore's own states, orchestrations or templates have that name [PACK_INVALID] | give it another name in its pack.yaml; kcore pack remove ${name} takes it out of a project`;
        expect(problemsIn(() => foldersOf("states", { project, shipped }))).to.deep.equal([refused]);
        mkdirSync(join(project, "elsewhere"));
        writeFileSync(join(project, "elsewhere/pack.yaml"), `name: ${name}\n`);
        expect(await problemsOfRejection(fetchPack(project, { source: "elsewhere" }, runTasks))).to.deep.equal([
          refused,
        ]);
      });
    });

  it("can be a project's own files, which overriddenFiles lists", async () => {
    await inProject(
      {
        "states/nix.yaml": "steps: []\n",
        "states/kcore/runtime.yaml": "steps: []\n",
        "states/own.yaml": "steps: []\n",
        "templates/kcore-updater.path.hbs": "x\n",
        "packs/web/pack.yaml": "name: web\n",
      },
      async (project) => {
        expect(foldersOf("states", { project, shipped })).to.have.lengthOf(3);
        expect(overriddenFiles({ project, shipped })).to.deep.equal(
          "states/kcore/runtime.yaml states/nix.yaml templates/kcore-updater.path.hbs".split(" "),
        );
      },
    );
  });
});
