import { expect } from "chai";
import { runtimeUpdated } from "#engine/modules/runtime-updated.ts";
import { stepOf } from "#support/steps.ts";

const storePath = (version: string): string => `/nix/store/${"0".repeat(32)}-kcore-${version}`;

describe("runtime.updated", () => {
  it("wants the runtime at the path, and held", () => {
    const of = (to: string) =>
      stepOf(runtimeUpdated, { to, update: "u1", owner: "bastion-1", target: storePath("0.2.0") }).want;
    expect(of("activated")).to.deep.equal({ runtime: storePath("0.2.0") });
    expect(of("held")).to.deep.equal({ runtime: storePath("0.2.0"), update: "held" });
    expect(of("rolled_back")).to.deep.equal({ back: "yes" });
  });

  it("takes only words that stand in an order as they are", () => {
    const accepts = (fields: object): boolean =>
      runtimeUpdated.args.safeParse({ to: "fenced", update: "u1", owner: "o", target: storePath("1"), ...fields })
        .success;
    expect(accepts({})).to.equal(true);
    expect(accepts({ target: "git+https://example.org/systems?ref=main&rev=0123 nixpkgs=4567" })).to.equal(true);
    for (const fields of [
      { owner: 'a"b' },
      { update: "a b" },
      { target: "/nix/store/../etc" },
      { target: 'github:a/b"' },
    ])
      expect(accepts(fields), JSON.stringify(fields)).to.equal(false);
  });
});
