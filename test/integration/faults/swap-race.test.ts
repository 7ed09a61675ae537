import { spawn, type ChildProcess } from "node:child_process";
import { expect } from "chai";
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { runStepOn, shells } from "#support/steps.ts";

const nobodyUid = 65_534;
const secret = "the secret content of this file";

/** Runs as the user `nobody`, and attacks a folder as a local user can, in a loop. */
const attacker = `
const fs = require("node:fs");
const [dir, victim, forbidden] = process.argv.slice(1);
const tryTo = (work) => { try { return work(); } catch {} };
for (;;) {
  tryTo(() => fs.symlinkSync(victim, dir + "/conf"));
  for (const name of tryTo(() => fs.readdirSync(dir)) ?? []) {
    const path = dir + "/" + name;
    if (name.startsWith(".kcore")) { tryTo(() => fs.unlinkSync(path)); tryTo(() => fs.symlinkSync(victim, path)); tryTo(() => fs.linkSync(path, dir + "/stolen")); }
    const text = tryTo(() => fs.readFileSync(path, "utf8"));
    if (text && text.includes(${JSON.stringify(secret)})) { fs.writeSync(1, "READ " + name + "\\n"); process.exit(1); }
  }
  tryTo(() => { fs.renameSync(dir, dir + ".old"); fs.symlinkSync(forbidden, dir); });
}
`;

describe("a file in a folder of a hostile user", () => {
  let folder: string;
  let victim: string;
  let attack: ChildProcess | undefined;
  let attackerOutput = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "kcore-swap-"));
    chmodSync(folder, 0o755);
    victim = join(folder, "victim");
    writeFileSync(victim, "untouched", { mode: 0o600 });
    mkdirSync(join(folder, "forbidden"));
    attackerOutput = "";
  });
  afterEach(() => {
    attack?.kill("SIGKILL");
    attack = undefined;
    rmSync(folder, { recursive: true, force: true });
  });

  const put = (path: string, mode = "0600"): Step => {
    const blob = blobOf(secret, { sensitive: true });
    return {
      want: { content: blob.sha256 },
      probe: sh`[ -f ${path} ] && [ ! -L ${path} ] && fact content "$(sha256sum <${path} | cut -d" " -f1)" || fact content absent`,
      apply: sh`put_file ${blob} ${path} ${mode} root root`,
    };
  };
  const unleash = async (dir: string): Promise<void> => {
    attack = spawn(process.execPath, ["-e", attacker, dir, victim, join(folder, "forbidden")], {
      uid: nobodyUid,
      gid: nobodyUid,
      stdio: ["ignore", "pipe", "ignore"],
    });
    attack.stdout?.on("data", (chunk: Buffer) => (attackerOutput += chunk.toString()));
    await new Promise((resolve) => setTimeout(resolve, 200));
  };

  it("S-6 is never readable for others while it is written", async () => {
    const dir = join(folder, "dir");
    mkdirSync(dir);
    chmodSync(dir, 0o755);
    await unleash(dir);
    for (let round = 0; round < 30; round++) {
      rmSync(join(dir, "conf"), { force: true });
      const { outcome } = await runStepOn(shells[round % 3] ?? "dash", put(join(dir, "conf")));
      expect(outcome).to.equal("changed");
      expect(statSync(join(dir, "conf")).mode & 0o777).to.equal(0o600);
    }
    expect(attackerOutput).to.equal("");
    expect(readdirSync(dir)).to.deep.equal(["conf"]);
  });

  for (const shell of shells)
    it(`S-6 is replaced without a change to other names of its hard link or to a link's target, in ${shell}`, async () => {
      const dir = join(folder, "dir");
      mkdirSync(dir);
      linkSync(victim, join(dir, "conf"));
      expect((await runStepOn(shell, put(join(dir, "conf")))).outcome).to.equal("changed");
      expect(readFileSync(victim, "utf8")).to.equal("untouched");
      rmSync(join(dir, "conf"));
      symlinkSync(victim, join(dir, "conf"));
      expect((await runStepOn(shell, put(join(dir, "conf")))).outcome).to.equal("changed");
      expect(readFileSync(victim, "utf8")).to.equal("untouched");
    });
});
