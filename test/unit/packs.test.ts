import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect } from "chai";
import { readOwnModule } from "#engine/own-modules/own-module.ts";
import { Secret } from "#engine/step/secret.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { root } from "#support/pages.ts";
import { contextOf, stepOf } from "#support/steps.ts";

describe("the packs of the repository", () => {
  for (const file of globSync("packs/*/modules/*.yaml", { cwd: root }))
    it(`${file} makes steps whose texts sh can read, and that hide a secret`, () => {
      const name = basename(file, ".yaml");
      const { module, example } = readOwnModule(name, parseSource(file, readFileSync(join(root, file), "utf8")));
      expect(name).to.match(new RegExp(`^${file.split("/")[1]}\\.`));
      const isSecret = "password" in (module.args as unknown as { shape: object }).shape;
      for (const more of [{}, ...(isSecret ? [{ password: new Secret("s3cret") }] : [])]) {
        const step = stepOf(module, { ...example, ...more }, contextOf());
        expect(JSON.stringify(step)).not.to.contain("s3cret");
        for (const text of [step.probe, step.guard, step.apply]) {
          const { status, stderr } = spawnSync("sh", ["-n"], { input: text?.masked ?? "", encoding: "utf8" });
          expect(status, `${stderr}${text?.masked}`).to.equal(0);
        }
      }
    });
});
