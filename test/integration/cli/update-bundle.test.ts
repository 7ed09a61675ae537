import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect } from "chai";
import { readBundleFile } from "#cli/update/bundles.ts";
import { Bundle } from "#rollout/spec.ts";
import { TestProject } from "#support/kcore.ts";
import { unpackExport } from "#support/nar.ts";

describe("kcore update bundle", () => {
  let project: TestProject;
  before(() => {
    project = new TestProject();
  });
  after(() => project.remove());

  it("builds a bundle of this kcore's runtime, and shows the same facts from the file", async () => {
    const built = await project.kcore("update", "bundle", "build", "-o", "json");
    expect(built.code, built.stderr).to.equal(0);
    const { file, ...bundle } = JSON.parse(built.stdout) as { file: string };
    const { version, arch } = Bundle.parse(bundle);
    expect(file).to.equal(join(project.project, `kcore-${version}-${arch}.bundle`));
    expect(await project.kcore("update", "bundle", "show", file, "-o", "json")).to.include({
      code: 0,
      stdout: built.stdout,
      stderr: "",
    });
    const shown = await project.kcore("update", "bundle", "show", file);
    expect(shown.stdout).to.match(new RegExp(`^version {3}${RegExp.escape(version)}\narch {6}${arch}\n`));

    const found = await readBundleFile(file);
    const root = join(project.path, "unpacked");
    unpackExport(gunzipSync(readFileSync(file).subarray(found.start)), root);
    const manifest = JSON.parse(readFileSync(join(root, found.bundle.storePath, "manifest.json"), "utf8")) as object;
    expect(manifest).to.include({ name: "kcore", version, arch });
  });
});
