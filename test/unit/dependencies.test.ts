import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";

type Versions = Readonly<Record<string, string>>;
interface Manifest {
  readonly dependencies: Versions;
  readonly devDependencies: Versions;
  readonly optionalDependencies: Versions;
  readonly allowScripts: Readonly<Record<string, boolean>>;
}
interface Lock {
  readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>>;
}

const read = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, "../..", name), "utf8"));

describe("dependencies", () => {
  it("S-26: are pinned exactly, and every script at installation is allowed or refused by name", () => {
    const manifest = read("package.json") as Manifest;
    const { packages } = read("package-lock.json") as Lock;
    const all = Object.entries({
      ...manifest.dependencies,
      ...manifest.devDependencies,
      ...manifest.optionalDependencies,
    });
    expect(all.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).to.deep.equal([]);
    const withScript = Object.entries(packages)
      .filter(([path, { hasInstallScript }]) => path !== "" && hasInstallScript === true)
      .map(([path]) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length));
    expect(withScript.filter((name) => !(name in manifest.allowScripts))).to.deep.equal([]);
  });
});
