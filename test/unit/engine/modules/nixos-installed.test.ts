import { readFileSync } from "node:fs";
import { expect } from "chai";
import { nixosInstalled } from "#engine/modules/nixos-installed.ts";
import { blobOf } from "#engine/step/blob.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

// A file whose hash is right: it is compared when it is read.
const { sha256 } = blobOf(readFileSync(import.meta.filename));
const file = { path: "flake.nix", file: import.meta.filename, sha256, size: 1 };
const on = { disk: { serial: "S1" }, flake: { name: "n1", files: [file] } };

// What it does to a disk is tried with a real Nix: test/integration/nixos/install.test.ts.
describe("nixos.installed", () => {
  it("wants the system there, and installs the machine of that name without a question", () => {
    const { want, apply } = stepOf(nixosInstalled, on);
    expect(want).to.deep.equal({ system: "installed" });
    expect(apply?.masked).to.contain(
      `nixos-install --root "$t" --flake "path:$t/etc/nixos#"n1 --no-root-passwd --no-channel-copy </dev/null`,
    );
  });

  it("takes nixpkgs from elsewhere and fetches nothing where it is told so", () => {
    const { apply } = stepOf(nixosInstalled, { ...on, nixpkgs: "path:/iso/nixpkgs", offline: true });
    expect(apply?.masked).to.contain("--override-input nixpkgs path:/iso/nixpkgs --option substituters '' </dev/null");
  });

  it("only takes files that stay in the flake, and names that are one word", () => {
    const accepts = (flake: object, more: object = {}): boolean =>
      nixosInstalled.args.safeParse({ ...on, flake: { ...on.flake, ...flake }, ...more }).success;
    expect(accepts({ files: [{ ...file, path: "hosts/n1.example.org/a-b.nix" }] })).to.equal(true);
    for (const path of ["../x", "/etc/passwd", "a/../b", ".git/config", "a b", "-x", ""])
      expect(accepts({ files: [{ ...file, path }] }), path).to.equal(false);
    for (const name of ['n"1', "n 1", "-n", "$(id)"]) expect(accepts({ name }), name).to.equal(false);
    expect(accepts({}, { nixpkgs: "a b" })).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`refuses where the machine has no such disk, on ${shell}`, async () => {
      const { problem } = await runStepOn(shell, stepOf(nixosInstalled, on), { bin: { lsblk: "exit 1" } });
      expect(problem?.code).to.equal("DISK_NOT_FOUND");
    });
});
