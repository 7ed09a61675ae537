import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { fetchPack } from "#cli/pack/fetch-pack.ts";
import { foldersOf, overriddenFiles } from "#engine/project/folders.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { makeProject } from "#support/project.ts";
import { problemsIn, problemsOfRejection } from "#support/problems.ts";

const shipped = shippedRoot();

describe("S8: names that kcore ships", () => {
  for (const name of ["kcore", "nix", "system", "update", "certs", "cluster"])
    it(`are no pack's: ${name}`, async () => {
      const project = await makeProject({ [`packs/${name}/pack.yaml`]: `name: ${name}\n` });
      try {
        const refused = `no pack can be called “${name}”: kcore's own states and orchestrations have that name [PACK_INVALID] | give it another name in its pack.yaml; kcore pack remove ${name} takes it out of a project`;
        expect(problemsIn(() => foldersOf("states", { project: project.path, shipped }))).to.deep.equal([refused]);
        mkdirSync(join(project.path, "elsewhere"));
        writeFileSync(join(project.path, "elsewhere/pack.yaml"), `name: ${name}\n`);
        expect(await problemsOfRejection(fetchPack(project.path, { source: "elsewhere" }))).to.deep.equal([refused]);
      } finally {
        await project.remove();
      }
    });

  it("can be a project's own files, which are told; other packs are as before", async () => {
    const project = await makeProject({
      "states/nix.yaml": "steps: []\n",
      "states/kcore/runtime.yaml": "steps: []\n",
      "states/own.yaml": "steps: []\n",
      "templates/kcore-updater.path.hbs": "x\n",
      "packs/web/pack.yaml": "name: web\n",
    });
    try {
      expect(foldersOf("states", { project: project.path, shipped })).to.have.lengthOf(3);
      expect(overriddenFiles({ project: project.path, shipped })).to.deep.equal(
        "states/kcore/runtime.yaml states/nix.yaml templates/kcore-updater.path.hbs".split(" "),
      );
    } finally {
      await project.remove();
    }
  });
});
