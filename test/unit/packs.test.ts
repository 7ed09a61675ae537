import { spawnSync } from "node:child_process";
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect } from "chai";
import { readOwnModule } from "#engine/own-modules/own-module.ts";
import { Secret } from "#engine/step/secret.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { root } from "#support/pages.ts";
import { addPacks } from "#support/packs.ts";
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

  it("nodeexporter gives its folder of textfiles to a group, whose members replace no file of root", () => {
    const project = addPacks(["node-exporter"]);
    try {
      const shown = (...words: readonly string[]): string =>
        spawnSync(
          join(root, "bin/kcore"),
          ["state", "show", "nodeexporter/exporter", "--on", "n1", "--project", project.path, ...words],
          { env: { ...process.env, KCORE_SOURCE: "1" }, encoding: "utf8" },
        ).stdout;
      const folder = (text: string): string => /id: textfile folder[^]*?(?=\n *- id:|$)/.exec(text)?.[0] ?? text;
      expect(folder(shown()))
        .to.match(/"?0755/)
        .and.to.contain("group: root");
      expect(folder(shown("--set", "group=ops")))
        .to.contain("3775")
        .and.to.contain("group: ops");
    } finally {
      project.remove();
    }
  });

  it("nodeexporter's collector follows no link of the folder's group", () => {
    const folder = mkdtempSync(join(tmpdir(), "kcore-textfiles-"));
    try {
      mkdirSync(join(folder, "elsewhere"));
      writeFileSync(join(folder, "target"), "as it was");
      symlinkSync("target", join(folder, ".kcore-agent.new"));
      symlinkSync("elsewhere", join(folder, "kcore-agent.prom"));
      const words = [folder, "http://127.0.0.1:1/metrics", "-", "none", "none"];
      spawnSync("sh", [join(root, "packs/node-exporter/files/kcore-metrics"), ...words]);
      expect(readFileSync(join(folder, "target"), "utf8")).to.equal("as it was");
      expect(readFileSync(join(folder, "kcore-agent.prom"), "utf8")).to.contain('kcore_up{daemon="agent"} 0');
      const names = readdirSync(folder).toSorted();
      expect(names).to.deep.equal([".kcore-agent.new", "elsewhere", "kcore-agent.prom", "target"]);
      expect(statSync(join(folder, "kcore-agent.prom")).mode & 0o777).to.equal(0o644);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
