import { expect } from "chai";
import { nixProfile } from "#engine/modules/nix-profile.ts";
import { sh } from "#engine/step/sh.ts";
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

  it("goes back to one generation or from one path, and takes no more than one of the three", () => {
    const back = stepOf(nixProfile, { backFrom: "kcore-0.2.0" });
    expect([back.want, back.apply?.blobs]).to.deep.equal([{ left: "yes" }, []]);
    expect(stepOf(nixProfile, { generation: 3 }).want).to.deep.equal({ generation: "3" });
    for (const args of [{}, { path, generation: 3 }, { generation: 3, backFrom: "a" }, { generation: 3, source }])
      expect(nixProfile.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
    expect(nixProfile.args.safeParse({ backFrom: "../x" }).success).to.equal(false);
  });

  for (const shell of shells) {
    it(`S-22: does not go back to an older version unless told to, on ${shell}`, async () => {
      const store = (version: string): string => path.replace("0.1.0", version);
      const run = (old: string, wanted: string, more: object = {}) => {
        const step = stepOf(nixProfile, { path: store(wanted), ...more });
        const probe = sh`fact store absent; fact profile ${old}`;
        return runStepOn(shell, { ...step, probe, tools: [] }, { dryRun: true });
      };
      const codeOf = async (old: string, wanted: string, more?: object) =>
        (await run(store(old), wanted, more)).problem?.code;
      for (const [old, wanted] of [
        ["0.2.0", "0.1.9"],
        ["0.10.0", "0.9.3"],
        ["1.0", "0.99.99"],
        ["0.1.0.1", "0.1.0"],
      ] as const)
        expect(await codeOf(old, wanted), `${old} → ${wanted}`).to.equal("NIX_DOWNGRADE");
      for (const [old, wanted] of [
        ["0.1.9", "0.2.0"],
        ["0.9.3", "0.10.0"],
        ["0.1", "0.1.0"],
        ["0.2.0-beta", "0.1.0"],
      ] as const)
        expect(await codeOf(old, wanted), `${old} → ${wanted}`).to.equal(undefined);
      expect(await codeOf("0.2.0", "0.1.0", { downgrade: true })).to.equal(undefined);
      // Another program's version says nothing about this one's.
      expect((await run(store("9.0").replace("kcore", "other"), "0.1.0")).problem).to.equal(undefined);
    });

    it(`says what is missing when it has nothing to deliver, on ${shell}`, async () => {
      const run = await runStepOn(shell, stepOf(nixProfile, { path }), {
        bin: { "nix-store": `[ "$*" = "--check-validity ${path}" ] && exit 1; exit 99`, "nix-env": "exit 99" },
      });
      expect(run.have).to.deep.equal({ store: "absent", profile: "absent", generation: "none" });
      expect(run.problem?.code).to.equal("NIX_PATH_DIFFERS");
    });
  }
});
