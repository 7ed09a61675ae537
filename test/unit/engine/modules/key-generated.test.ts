import { createPublicKey, verify } from "node:crypto";
import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { keyGenerated } from "#engine/modules/key-generated.ts";
import { contextOf, runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("key.generated", () => {
  const at = folderOfEachTest("key");

  for (const shell of shellsOf(import.meta.filename)) {
    it(`makes an EC P-256 key with mode 0600, and signs the challenge, on ${shell} (S-14)`, async () => {
      const step = stepOf(keyGenerated, { path: at("node.key"), challenge: "run 1 it's $(node)" });
      const run = await runStepOn(shell, step);
      expect([run.outcome, statSync(at("node.key")).mode & 0o7777]).to.deep.equal(["changed", 0o600]);
      const key = createPublicKey({ key: Buffer.from(run.now["spki"] ?? "", "base64"), format: "der", type: "spki" });
      expect(key.asymmetricKeyDetails?.namedCurve).to.equal("prime256v1");
      const proof = Buffer.from(run.now["proof"] ?? "", "base64");
      expect(verify("sha256", Buffer.from("run 1 it's $(node)"), key, proof)).to.equal(true);
      const again = await runStepOn(shell, step);
      expect(again.outcome).to.equal("ok");
      expect(again.have["spki"]).to.equal(run.now["spki"]);
    });

    it(`prints no byte of the private key, on ${shell} (S-7)`, async () => {
      const { stdout, stderr, now } = await runStepOn(shell, stepOf(keyGenerated, { path: at("node.key") }));
      const [, body = "none"] = readFileSync(at("node.key"), "utf8").split("\n");
      expect(`${stdout}${stderr}${JSON.stringify(now)}`).not.to.contain(body);
      expect(`${stdout}${stderr}`).not.to.contain("PRIVATE");
    });

    it(`makes a key as another user, without files in /tmp that others could plant, on ${shell}`, async () => {
      const daemon = 1;
      chmodSync(at(), 0o755);
      mkdirSync(at("home"));
      chownSync(at("home"), 65_534, 65_534);
      const path = at("home/own.key");
      // Names of temporary files in /tmp, planted by another user.
      const planted = ["key", "spki", "challenge", "proof", "dd"].map((name) => join("/tmp", name));
      for (const name of planted) {
        rmSync(name, { force: true });
        writeFileSync(name, "planted", { mode: 0o644 });
        chownSync(name, daemon, daemon);
      }
      const step = stepOf(keyGenerated, { path, challenge: "run 1" }, contextOf({ runAs: "nobody" }));
      const plan = { runAs: "nobody" };
      const run = await runStepOn(shell, step, { plan });
      expect([run.outcome, run.now["owner"]], run.stderr).to.deep.equal(["changed", "nobody"]);
      expect([statSync(path).uid, statSync(path).mode & 0o7777]).to.deep.equal([65_534, 0o600]);
      chmodSync(path, 0o640);
      expect((await runStepOn(shell, step, { plan })).outcome).to.equal("changed");
      expect((await runStepOn(shell, step, { plan })).outcome).to.equal("ok");
      for (const name of planted) {
        expect(readFileSync(name, "utf8")).to.equal("planted");
        rmSync(name);
      }
    });
  }
});
