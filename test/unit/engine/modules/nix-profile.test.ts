import { expect } from "chai";
import { nixProfile } from "#engine/modules/nix-profile.ts";
import { stepOf } from "#support/steps.ts";

const path = "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-kcore-0.1.0";
const source = { file: "/nowhere/closure.gz", sha256: "0".repeat(64), size: 40_000_000 };

describe("nix.profile", () => {
  it("has a text of the same length for one path and for a thousand", () => {
    const many = Array.from({ length: 999 }, (_, index) => ({
      ...source,
      sha256: String(index).padStart(64, "0"),
      path: path.replace("kcore", `lib-${index}`),
    }));
    const lengthOf = (list: readonly object[]): number => {
      const step = stepOf(nixProfile, { path, source: list });
      return [step.probe, step.asks, step.apply].join("").length;
    };
    expect(lengthOf([...many, { ...source, path }])).to.equal(lengthOf([{ ...source, path }]));
  });
});
