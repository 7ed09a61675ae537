import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";

const root = join(import.meta.dirname, "../..");

describe("a release", () => {
  let folder: string;
  before(() => (folder = mkdtempSync(join(tmpdir(), "kcore-release-"))));
  after(() => rmSync(folder, { recursive: true, force: true }));

  it("S-26: lists each package that it installs, with version and hash", () => {
    execFileSync("npm", ["run", "--silent", "sbom"], { cwd: root });
    // The bundle already exists: the test run built it.
    execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder], { cwd: root });
    execFileSync("tar", ["-xzf", join(folder, "kcore-0.1.0.tgz"), "-C", folder]);
    const { metadata, components } = JSON.parse(readFileSync(join(folder, "package/sbom.cdx.json"), "utf8")) as {
      metadata: { component: { name: string; version: string } };
      components: { name: string; version: string; hashes: { alg: string }[] }[];
    };
    expect(metadata.component).to.deep.include({ name: "kcore", version: "0.1.0" });
    const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
      packages: Record<string, { version: string; dev?: boolean; devOptional?: boolean }>;
    };
    const installed = Object.entries(packages)
      .filter(([path, { dev, devOptional }]) => path !== "" && dev !== true && devOptional !== true)
      .map(([path, { version }]) => `${path.replace(/^.*node_modules\//, "")}@${version}`);
    expect(new Set(components.map(({ name, version }) => `${name}@${version}`))).to.deep.equal(new Set(installed));
    const names = components.map(({ name }) => name);
    expect(names).to.include.members(["ssh2", "yaml", "zod", "diff", "node-forge"]).and.not.include("mocha");
    expect(components.filter(({ hashes }) => !hashes.some(({ alg }) => alg === "SHA-512"))).to.deep.equal([]);
  });
});
