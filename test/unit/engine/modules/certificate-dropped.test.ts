import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { certificateDropped } from "#engine/modules/certificate-dropped.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("certificate.dropped", () => {
  let folder: string;
  let drop: string;
  const file = (name: string): string => join(folder, name);
  const text = (name: string): string => readFileSync(file(name), "utf8");
  const openssl = (...args: string[]): void => void execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "kcore-cert-"));
    for (const name of ["ca", "other-ca", "node", "other"])
      openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", `${name}.key`);
    for (const name of ["ca", "other-ca"])
      openssl(
        "req",
        "-x509",
        "-new",
        "-key",
        `${name}.key`,
        "-subj",
        `/CN=${name}`,
        "-days",
        "2",
        "-addext",
        "keyUsage=critical,keyCertSign",
        "-out",
        `${name}.crt`,
      );
    openssl("req", "-new", "-key", "node.key", "-subj", "/CN=node", "-out", "node.csr");
    writeFileSync(file("ext"), "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\nbasicConstraints=CA:false\n");
    const issue = [
      "x509",
      "-req",
      "-in",
      "node.csr",
      "-CA",
      "ca.crt",
      "-CAkey",
      "ca.key",
      "-extfile",
      "ext",
      "-set_serial",
    ];
    openssl(...issue, "7", "-days", "1", "-out", "node.crt");
    openssl(...issue, "8", "-days", "-1", "-out", "expired.crt");
  });
  after(() => rmSync(folder, { recursive: true, force: true }));
  beforeEach(() => (drop = mkdtempSync(join(folder, "drop-"))));

  const step = (cert: string, { ca = "ca.crt", key = "node.key" } = {}): ReturnType<typeof stepOf> =>
    stepOf(certificateDropped, {
      path: join(drop, "node.crt"),
      content: text(cert),
      ca: { path: join(drop, "ca.crt"), content: text(ca) },
      key: file(key),
    });

  it("takes only certificates, no private key", () => {
    const accepts = (content: string): boolean =>
      certificateDropped.args.safeParse({ path: "/c", content, ca: { path: "/a", content: text("ca.crt") }, key: "/k" })
        .success;
    expect(accepts(text("node.crt") + text("ca.crt"))).to.equal(true);
    expect(accepts(text("node.crt") + text("node.key"))).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename)) {
    it(`drops certificate and CA, and changes nothing the second time, on ${shell}`, async () => {
      const run = await runStepOn(shell, step("node.crt"));
      expect([run.outcome, run.now["key"]]).to.deep.equal(["changed", "matches"]);
      expect(readFileSync(join(drop, "node.crt"), "utf8")).to.equal(text("node.crt"));
      expect(statSync(join(drop, "ca.crt")).mode & 0o7777).to.equal(0o644);
      expect((await runStepOn(shell, step("node.crt"))).outcome).to.equal("ok");
    });

    it(`refuses a certificate for another key, on ${shell}`, async () => {
      const run = await runStepOn(shell, step("node.crt", { key: "other.key" }));
      expect(run.problem?.code).to.equal("CERTIFICATE_KEY_MISMATCH");
      expect(existsSync(join(drop, "node.crt"))).to.equal(false);
    });

    it(`refuses a certificate that another CA issued, on ${shell}`, async () => {
      const run = await runStepOn(shell, step("node.crt", { ca: "other-ca.crt" }));
      expect(run.problem?.code).to.equal("CERTIFICATE_INVALID");
    });

    it(`refuses an expired certificate, and says the node's time, on ${shell}`, async () => {
      const run = await runStepOn(shell, step("expired.crt"));
      expect(run.problem?.code).to.equal("CERTIFICATE_INVALID");
      expect(run.problem?.message).to.contain("whose clock says 20");
      expect(run.problem?.detail).to.contain("expired");
    });
  }
});
