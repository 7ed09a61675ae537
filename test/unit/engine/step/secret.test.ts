import { inspect } from "node:util";
import { expect } from "chai";
import { knownSecrets, secret } from "#engine/step/secret.ts";

describe("a secret", () => {
  it("prints as *** in every way, and is in the list of secrets to mask", () => {
    const kept = secret("hunter2-of-this-test");
    for (const text of [String(kept), JSON.stringify({ kept }), inspect({ kept }), `${[kept].join()}`]) {
      expect(text).to.contain("***");
      expect(text).not.to.contain("hunter2");
    }
    expect([kept.reveal(), knownSecrets().has("hunter2-of-this-test")]).to.deep.equal(["hunter2-of-this-test", true]);
  });

  it("that is empty is not masked", () => {
    expect([secret("").reveal(), knownSecrets().has("")]).to.deep.equal(["", false]);
  });
});
