import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { pkiEscrow } from "#actions/pki-escrow.ts";
import { pkiEscrowKey } from "#actions/pki-escrow-key.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { rejectionOf } from "#support/rejection.ts";
import { actionContext } from "#support/action-context.ts";
import { TestProject } from "#support/kcore.ts";

const uuid = "5c1c2e1a-5b7e-5a0e-8a37-2d3d1b1f0a11";
const other = "6c1c2e1a-5b7e-5a0e-8a37-2d3d1b1f0a12";
const key = "cbdefghi-cbdefghi-cbdefghi-cbdefghi-cbdefghi-cbdefghi-cbdefghi-cbdefghi";

/** The bastion's keys of encrypted disks, from the escrow key to the operator's command. */
describe("kcore disk recovery-key", () => {
  let project: TestProject;
  let home: string;
  let publicKey: string;
  const vars = { encryptDisks: true };
  const node = { name: "n1", address: "127.0.0.1", roles: [], id: "0b7d2a52-7c1e-4f0e-9a50-0d8a3b0f4e11", vars };
  const context = () =>
    actionContext({
      home,
      node: node as unknown as NodeEntry,
      nodes: new Map([["n1", node as unknown as NodeEntry]]),
      targets: ["n1"],
      passphrase: () => Promise.resolve("correct horse battery"),
    });
  /** Encrypts to the escrow key as a node does. */
  const seal = (text: string): string => {
    writeFileSync(join(project.path, "public.pem"), publicKey);
    const padding = ["-pkeyopt", "rsa_padding_mode:oaep", "-pkeyopt", "rsa_oaep_md:sha256"];
    const words = ["pkeyutl", "-encrypt", "-pubin", "-inkey", join(project.path, "public.pem"), ...padding];
    return execFileSync("openssl", words, { input: text }).toString("hex");
  };
  const show = (...words: readonly string[]) =>
    project.kcore("disk", "recovery-key", ...words, "--passphrase-file", join(project.path, "passphrase"));

  before(async () => {
    project = new TestProject();
    home = join(project.path, "home");
    project.write({ passphrase: "correct horse battery\n", wrong: "another one entirely\n" });
    execFileSync("chmod", ["600", join(project.path, "passphrase"), join(project.path, "wrong")]);
    const made = await project.kcore("create", "cluster", "--passphrase-file", join(project.path, "passphrase"));
    expect(made.code, made.stderr).to.equal(0);
  });
  after(() => project.remove());

  it("creates the escrow key once, when a node encrypts, and openssl opens it with the passphrase", async () => {
    expect(await pkiEscrowKey.run({}, { ...context(), targets: [] })).to.deep.equal({
      changed: false,
      outputs: { publicKey: "" },
    });
    expect(await pkiEscrowKey.plan({}, context())).to.equal("unknown");
    const first = await pkiEscrowKey.run({}, context());
    expect(first.changed).to.equal(true);
    publicKey = String(first.outputs["publicKey"]);
    const again = { changed: false, outputs: { publicKey } };
    const silent = { ...context(), passphrase: () => Promise.reject(new Error("asked for a passphrase")) };
    expect(await pkiEscrowKey.run({}, silent)).to.deep.equal(again);
    expect(await pkiEscrowKey.plan({}, silent)).to.deep.equal(again);
    const words = ["pkey", "-in", join(home, "default/escrow.key"), "-pubout", "-passin"];
    expect(
      execFileSync("openssl", [...words, `file:${join(project.path, "passphrase")}`], { encoding: "utf8" }),
    ).to.equal(publicKey);
  });

  it("keeps a node's sealed key once, and refuses text that is no sealed key", async () => {
    const sealed = `${uuid}:${seal("an older key")}:S1,S2 `;
    expect((await pkiEscrow.run({ sealed, unlock: "" }, context())).changed).to.equal(true);
    expect((await pkiEscrow.run({ sealed, unlock: "" }, context())).changed).to.equal(false);
    const newer = `${uuid}:${seal(key)}:S1,S2 ${other}:${seal(key)}:S3:odd `;
    expect((await pkiEscrow.run({ sealed: newer, unlock: "" }, context())).changed).to.equal(true);
    for (const text of ["nonsense", `${uuid}:zz:S1`, `../x:${"0".repeat(768)}:S1`]) {
      const failed = await rejectionOf(pkiEscrow.run({ sealed: text, unlock: "" }, context()));
      expect(failed.problems[0]?.code, text).to.equal("RECOVERY_KEY_UNREADABLE");
    }
  });

  it("lists a node's containers without the passphrase, and shows the newest key of one", async () => {
    const list = await project.kcore("disk", "recovery-key", "n1");
    expect(list.stdout, list.stderr).to.match(
      new RegExp(`DISKS +CONTAINER +KEPT FOR\nS1, S2 +${uuid} +\\d+s\nS3:odd +${other}`),
    );
    for (const name of ["S1", "S2", uuid, uuid.toUpperCase()]) {
      const shown = await show("n1", name);
      expect(shown, shown.stderr).to.deep.include({ code: 0, stdout: `${key}\n` });
    }
    const json = await show(node.id, "S1", "-o", "json");
    expect(JSON.parse(json.stdout)).to.deep.equal({ node: "n1", uuid, disks: ["S1", "S2"], recoveryKey: key });
  });

  it("records each shown key before showing it, records no failed attempt, and detects a changed trail", async () => {
    const entries = async (): Promise<readonly { readonly type: string; readonly target: string }[]> =>
      JSON.parse((await project.kcore("audit", "show", "-o", "json")).stdout) as [];
    const before = await entries();
    const failed = await project.kcore(
      "disk",
      "recovery-key",
      "n1",
      "S1",
      "--passphrase-file",
      join(project.path, "wrong"),
    );
    expect(failed.stderr).to.include("PKI_PASSPHRASE_WRONG");
    expect(await entries()).to.have.length(before.length);
    await show("n1", "S1");
    expect((await entries()).at(-1)).to.include({ type: "recovery-key.shown", target: `n1 ${uuid}` });
    const verified = await project.kcore("audit", "verify");
    expect(verified.stdout).to.match(/recovery keys +whole/);
    const kept = ["escrow", "escrow.pub"].map((name) => join(home, "default", name));
    for (const path of kept) renameSync(path, `${path}.away`);
    const removed = await project.kcore("audit", "verify");
    expect(removed.code, removed.stdout).to.equal(1);
    expect(removed.stdout).to.match(/recovery keys +damaged/);
    for (const path of kept) renameSync(`${path}.away`, path);
    const [first = ""] = readdirSync(join(home, "default/escrow/audit"));
    const file = join(home, "default/escrow/audit", first);
    writeFileSync(file, readFileSync(file, "utf8").replace("n1 ", "n2 "));
    expect((await project.kcore("audit", "verify")).code).to.equal(1);
  });

  it("names an unknown node or disk, and a kept file that is unreadable", async () => {
    for (const [words, said] of [
      [["n2"], /no recovery key of a node “n2” is kept here.*\n.*did you mean “n1”/],
      [["n1", "S9"], /no recovery key of a disk S9 of n1 is kept here/],
    ] as const) {
      const { code, stderr } = await show(...words);
      expect(code).to.equal(2);
      expect(stderr).to.match(said).and.include("RECOVERY_KEY_UNKNOWN");
    }
    writeFileSync(join(home, "default/escrow", `${node.id}.json`), "{");
    expect((await show("n1", "S1")).stderr).to.include("RECOVERY_KEY_UNREADABLE");
  });
});
