import { generateKeyPairSync } from "node:crypto";
import { expect } from "chai";
import { luksEscrowed } from "#engine/modules/luks-escrowed.ts";
import { runStepOn, shells, stepOf } from "#support/steps.ts";

const pem = (...[kind, options]: [string, object]): string =>
  (generateKeyPairSync as unknown as (kind: string, options: object) => { publicKey: string })(kind, {
    ...options,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  }).publicKey;
const publicKey = pem("rsa", { modulusLength: 2048 });

describe("luks.escrowed", () => {
  it("takes an RSA public key of at least 2048 bits, and nothing else", () => {
    const accepts = (key: string): boolean => luksEscrowed.args.safeParse({ publicKey: key }).success;
    expect(accepts(publicKey)).to.equal(true);
    const others = [pem("rsa", { modulusLength: 1024 }), pem("ec", { namedCurve: "P-256" }), "", "ssh-rsa AAAA"];
    for (const key of others) expect(accepts(key), key).to.equal(false);
  });

  for (const shell of shells)
    it(`is in order where kcore has made no container, on ${shell}`, async () => {
      const run = await runStepOn(shell, stepOf(luksEscrowed, { publicKey }), { bin: { cryptsetup: "exit 9" } });
      expect(run.outcome, JSON.stringify(run)).to.equal("ok");
      expect(run.have).to.deep.equal({ missing: "none", sealed: "" });
    });
});
