import { expect } from "chai";
import { nixProfile } from "#engine/modules/nix-profile.ts";
import { runStepOn, shells, stepOf } from "#support/steps.ts";

const path = "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-kcore-0.1.0";
const source = { file: "/nowhere/closure.gz", sha256: "0".repeat(64), size: 40_000_000 };

describe("nix.profile", () => {
  it("wants the profile at the path", () => {
    expect(stepOf(nixProfile, { path }).want).to.deep.equal({ store: "valid", profile: path });
  });

  it("neither reads nor hashes the closure on the bastion, and only its apply needs it", () => {
    const step = stepOf(nixProfile, { path, source });
    expect(step.probe.blobs).to.deep.equal([]);
    expect(step.apply?.blobs.map(({ size }) => size)).to.deep.equal([40_000_000]);
  });

  it("takes only store paths, and profiles where Nix keeps them", () => {
    const accepts = (args: object): boolean => nixProfile.args.safeParse({ path, ...args }).success;
    expect(accepts({})).to.equal(true);
    expect(accepts({ path: "/nix/store/../../etc" })).to.equal(false);
    expect(accepts({ path: `${path}/bin` })).to.equal(false);
    expect(accepts({ profile: "/etc/kcore" })).to.equal(false);
  });

  for (const shell of shells) {
    it(`says what is missing when it has nothing to deliver, on ${shell}`, async () => {
      const run = await runStepOn(shell, stepOf(nixProfile, { path }), {
        bin: { "nix-store": `[ "$*" = "--check-validity ${path}" ] && exit 1; exit 99`, "nix-env": "exit 99" },
      });
      expect(run.have).to.deep.equal({ store: "absent", profile: "absent" });
      expect(run.problem?.code).to.equal("NIX_PATH_DIFFERS");
    });
  }
});
