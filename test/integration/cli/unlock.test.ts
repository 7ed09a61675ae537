import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { pkiEscrow } from "#actions/pki-escrow.ts";
import { findLockedRoot, unlockRoot } from "#actions/unlock-root.ts";
import { pkiEscrowKey } from "#actions/pki-escrow-key.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { createTransport } from "#engine/transport/connect.ts";
import { actionContext } from "#support/action-context.ts";
import { startDropbear } from "#support/dropbear.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import type { SshServer } from "#support/ssh-server.ts";

const uuid = "5c1c2e1a-5b7e-5a0e-8a37-2d3d1b1f0a11";
const id = "0b7d2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";
const key = "cbdefghi-cbdefghi-cbdefghi-cbdefghi-cbdefghi-cbdefghi-cbdefghi-cbdefghi";

/** A real dropbear with the options of the initrd's. Here cryptroot-unlock is a script; the real one: test/lab/vm-encrypted-root.test.ts. */
describe("kcore disk unlock", () => {
  let project: TestProject;
  let home: string;
  let initrd: SshServer;
  let publicKey: string;
  const vars = { encryptOs: true };
  const node = { name: "n1", address: "127.0.0.1", roles: [], id, vars } as unknown as NodeEntry;
  const context = (dryRun = false) =>
    actionContext({
      home,
      node,
      dryRun,
      nodes: new Map([["n1", node]]),
      targets: ["n1"],
      passphrase: () => Promise.resolve("correct horse battery"),
    });
  const sealedKey = (): string => {
    writeFileSync(join(project.path, "public.pem"), publicKey);
    const padding = ["-pkeyopt", "rsa_padding_mode:oaep", "-pkeyopt", "rsa_oaep_md:sha256"];
    const words = ["pkeyutl", "-encrypt", "-pubin", "-inkey", join(project.path, "public.pem"), ...padding];
    return `${uuid}:${execFileSync("openssl", words, { input: key }).toString("hex")}:S1 `;
  };
  const got = (): string | undefined => {
    const file = join(initrd.folder, "home/root/got");
    return existsSync(file) ? readFileSync(file, "utf8") : undefined;
  };
  /** Sets the initrd's answer to a key. */
  const teach = (answer: string): void => {
    writeFileSync(join(project.path, "cryptroot-unlock"), `#!/bin/sh\ncat >~/got\n${answer}\n`);
    chmodSync(join(project.path, "cryptroot-unlock"), 0o755);
    rmSync(join(initrd.folder, "home/root/got"), { force: true });
  };
  const unlock = (...more: readonly string[]): Promise<CommandEnd> =>
    project.kcore("disk", "unlock", "n1", "--passphrase-file", join(project.path, "passphrase"), ...more);
  const entries = async (): Promise<readonly { readonly type: string; readonly target: string }[]> =>
    JSON.parse((await project.kcore("audit", "show", "-o", "json")).stdout) as [];

  before(async () => {
    project = new TestProject();
    home = join(project.path, "home");
    initrd = await startDropbear({ args: ["-j", "-k", "-c", join(project.path, "cryptroot-unlock")] });
    // The copy of the key outlives the server's folder.
    const identityFile = join(project.path, "operator");
    copyFileSync(initrd.identityFile, identityFile);
    const roster = { n1: { address: "127.0.0.1", port: 1, id, user: "ops", identityFile, vars } };
    project.write({
      passphrase: "correct horse battery\n",
      "project/roster/nodes.yaml": `nodes: ${JSON.stringify(roster)}\n`,
    });
    execFileSync("chmod", ["600", join(project.path, "passphrase")]);
    const made = await project.kcore("create", "cluster", "--passphrase-file", join(project.path, "passphrase"));
    expect(made.code, made.stderr).to.equal(0);
    publicKey = String((await pkiEscrowKey.run({}, context())).outputs["publicKey"]);
  });
  after(async () => {
    await initrd.stop();
    await project.remove();
  });

  it("reports that nothing is known before a run has brought the key and the initrd's host key", async () => {
    const { code, stderr } = await unlock();
    expect(code).to.equal(2);
    expect(stderr).to.include("RECOVERY_KEY_UNKNOWN").and.include("no way to unlock n1 is kept here");
  });

  it("pki.escrow keeps sealed key and host key once; a plan reports the change without keeping it", async () => {
    const inputs = { sealed: sealedKey(), unlock: `${uuid} ${initrd.port} ${initrd.hostKey}` };
    expect((await pkiEscrow.plan(inputs, context(true))) as object).to.include({ changed: true });
    expect((await unlock()).stderr).to.include("RECOVERY_KEY_UNKNOWN");
    const first = context();
    expect((await pkiEscrow.run(inputs, first)).changed).to.equal(true);
    expect(first.notes).to.deep.equal([
      "keeps 1 new sealed recovery key of n1",
      "keeps the host key of n1 while it waits to be unlocked",
    ]);
    expect((await pkiEscrow.run(inputs, context())).changed).to.equal(false);
    // A finished system that is seen from a live one has neither.
    expect((await pkiEscrow.run({ sealed: "", unlock: "" }, context())).changed).to.equal(false);
  });

  it("records the key, then sends it on stdin to the initrd with the known host key, whatever the login user", async () => {
    teach("echo 'cryptsetup: luks set up successfully' >&2");
    const { code, stdout, stderr } = await unlock("-o", "json");
    expect([code, stderr]).to.deep.equal([0, ""]);
    expect(JSON.parse(stdout)).to.deep.equal({ node: "n1", uuid, unlocked: true });
    expect(got()).to.equal(key);
    expect((await entries()).at(-1)).to.include({ type: "recovery-key.sent", target: `n1 ${uuid}` });
    expect((await unlock()).stdout).to.equal("n1 is unlocked and goes on booting\n");
  });

  it("distinguishes a wrong key from a disk that did not ask for one", async () => {
    for (const [answer, said] of [
      [
        "echo 'cryptsetup: cryptsetup failed, bad password or options?' >&2; exit 1",
        /did not open by the recovery key/,
      ],
      ["echo 'Error: Timeout reached while waiting for askpass.' >&2; exit 1", /did not ask for the key of its disk/],
    ] as const) {
      teach(answer);
      const { code, stderr } = await unlock();
      expect([code, stderr]).to.satisfy(
        () => code === 1 && said.test(stderr) && stderr.includes("UNLOCK_FAILED"),
        stderr,
      );
    }
  });

  it("can be aborted while the initrd works", async () => {
    const over = join(project.path, "over");
    teach(`until [ -e ${over} ]; do sleep 0.1; done`);
    const folder = join(home, "default");
    const root = await findLockedRoot(folder, id);
    if (!root) throw new Error("nothing is kept");
    const transport = createTransport({ home });
    const way = { address: "127.0.0.1", port: 1, user: "ops", identityFile: join(project.path, "operator") };
    const stop = new AbortController();
    const end = unlockRoot(root, {
      endpoint: { name: "n1", transport: "ssh", ...way, hostKeys: [], jump: [] },
      connect: transport.connect,
      folder,
      passphrase: () => Promise.resolve("correct horse battery"),
      record: () => undefined,
      signal: stop.signal,
    });
    try {
      while (got() !== key) await sleep(20);
      stop.abort();
      expect(await end).to.equal("lost");
    } finally {
      writeFileSync(over, "");
      await transport.close();
    }
  });

  it("sends and records nothing when the host key differs", async () => {
    const file = join(home, "default/escrow", `${id}.json`);
    const kept = readFileSync(file, "utf8");
    const other = readFileSync(join(project.path, "key.pub"), "utf8").split(" ").slice(0, 2).join(" ");
    const before = (await entries()).length;
    teach("echo 'set up successfully' >&2");
    writeFileSync(file, kept.replace(initrd.hostKey, other));
    const { code, stderr } = await unlock();
    writeFileSync(file, kept);
    expect(code, stderr).to.equal(1);
    expect(stderr).to.include("UNLOCK_FAILED").and.include("nothing was sent").and.not.include("roster");
    expect([got(), (await entries()).length]).to.deep.equal([undefined, before]);
  });

  it("says where to look when the machine does not wait for a key", async () => {
    await initrd.stop();
    const { code, stderr } = await unlock();
    expect(code).to.equal(3);
    expect(stderr).to.include("HOST_UNREACHABLE").and.include("answers only while it waits to be unlocked");
    initrd = await startDropbear();
  });
});
