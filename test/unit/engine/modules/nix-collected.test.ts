import { expect } from "chai";
import { nixCollected } from "#engine/modules/nix-collected.ts";
import { stepOf } from "#support/steps.ts";

// Real profiles are collected in test/lab/modules.test.ts: the folder of profiles is Nix's own.
describe("nix.collected", () => {
  it("wants no generation too many", () => {
    const { want, apply } = stepOf(nixCollected, {});
    expect(want).to.deep.equal({ surplus: "none" });
    expect(apply?.masked).to.match(/^keep=5\n/);
  });

  it("looks at the profiles that were named alone", () => {
    const { probe } = stepOf(nixCollected, { profiles: ["kcore", "system"], keep: 2 });
    expect(probe.masked).to.contain("in /nix/var/nix/profiles/kcore /nix/var/nix/profiles/system; do");
  });

  it("refuses to keep none, and names that are paths", () => {
    for (const args of [{ keep: 0 }, { profiles: ["../x"] }, { profiles: ["a/b"] }, { profiles: [] }])
      expect(nixCollected.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });
});
