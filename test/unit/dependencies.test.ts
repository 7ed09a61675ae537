import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { affected, isPublished, type Lock, nameOf } from "../../scripts/advisories.ts";

type Versions = Readonly<Record<string, string>>;
interface Manifest {
  readonly dependencies: Versions;
  readonly devDependencies: Versions;
  readonly optionalDependencies: Versions;
  readonly allowScripts: Readonly<Record<string, boolean>>;
}

const read = (name: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, "../..", name), "utf8"));

/** Packages with install scripts that `allowScripts` does not mention; npm also runs `prepare` of packages from git. */
function undecided(packages: Lock["packages"], allowed: Manifest["allowScripts"]): readonly string[] {
  return Object.entries(packages)
    .filter(([path, locked]) => path !== "" && (locked.hasInstallScript === true || !isPublished(locked)))
    .map(([path, locked]) => nameOf(path, locked))
    .filter((name) => !(name in allowed));
}

describe("dependencies", () => {
  it("are checked by the name behind an alias, and packages from git for every version", () => {
    const resolved = "https://registry.npmjs.org/x.tgz";
    const packages = {
      "": {},
      "node_modules/alias": { name: "esbuild", version: "1.2.3", resolved, hasInstallScript: true },
      "node_modules/esbuild": { name: "evil", version: "1.2.3", resolved, hasInstallScript: true },
      "node_modules/fork": { version: "1.2.3", resolved: "git+ssh://git@github.com/a/fork.git#0123" },
      "node_modules/a/node_modules/quiet": { version: "1.2.3", resolved },
    };
    expect(undecided(packages, { esbuild: true })).to.deep.equal(["evil", "fork"]);
    const flaw = { id: "A-1", affected: "<1.2.0", what: "bad" };
    const all = ["esbuild", "evil", "fork", "alias"].map((name) => ({ package: name, ...flaw }));
    expect(affected({ packages }, all, "2026-01-01")).to.deep.equal(["node_modules/fork 1.2.3: A-1, bad"]);
    expect(affected({ packages }, [{ ...flaw, package: "evil", affected: "*" }], "2026-01-01")).to.deep.equal([
      "node_modules/esbuild 1.2.3: A-1, bad",
    ]);
  });

  it("S-26: are pinned exactly, and every install script is allowed or refused by name", () => {
    const manifest = read("package.json") as Manifest;
    const { packages } = read("package-lock.json") as Lock;
    const all = Object.entries({
      ...manifest.dependencies,
      ...manifest.devDependencies,
      ...manifest.optionalDependencies,
    });
    expect(all.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).to.deep.equal([]);
    expect(undecided(packages, manifest.allowScripts)).to.deep.equal([]);
  });
});
