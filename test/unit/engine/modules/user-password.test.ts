import { appendFileSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { secret } from "#engine/step/secret.ts";
import { userPassword } from "#engine/modules/user-password.ts";
import { makePrivateEtc, type PrivateEtc } from "#support/accounts.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const hash = "$6$salt$IxDD3jeSOb5eB1CX5LBsqZFVkJdido3OUILO5Ifz5iwMuTS4XMS130MTSuDDl3aCI6WouIL9AjRbLCelDCy.g.";
const other = "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$tnSYvahCwPBHKZUspmcxMfb0.WiB9W.zEaKlOBL35rC";

describe("user.password", () => {
  it("wants the hash, the lock, or both", () => {
    const wanted = (args: object) => stepOf(userPassword, { name: "ops", ...args }).want;
    expect(wanted({ password: secret(hash) })).to.deep.equal({ user: "present", password: "as wanted" });
    expect(wanted({ lock: false })).to.deep.equal({ user: "present", login: "open" });
  });

  it("refuses what is no hash, with how to make one, and a hash that is no secret", () => {
    const says = (args: object): string => JSON.stringify(userPassword.args.safeParse({ name: "ops", ...args }).error);
    for (const text of ["hunter2", "", "!", `!${hash}`, "$6$a b", "$6$a:b", "aXV5ZWtsZGpm."])
      expect(says({ password: secret(text) }), text).to.contain("openssl passwd -6");
    expect(says({ password: hash })).to.contain("secret of the roster");
    expect(says({})).to.contain("give password, lock or both");
  });

  it("never shows the hash (S-7)", () => {
    const step = stepOf(userPassword, { name: "ops", password: secret(hash), lock: true });
    expect(JSON.stringify(step) + String(step.apply) + String(step.probe) + String(step.keep)).not.to.contain(
      "IxDD3je",
    );
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let etc: PrivateEtc;
      beforeEach(() => {
        etc = makePrivateEtc();
        appendFileSync(`${etc.folder}/passwd`, "demo:x:1500:100::/nowhere:/bin/sh\n");
        appendFileSync(`${etc.folder}/shadow`, "demo:!:19000:0:99999:7:::\n");
      });
      afterEach(() => etc.remove());
      const run = (args: object, options?: StepRunOptions) =>
        runStepOn(etc.shell(shell), stepOf(userPassword, { name: "demo", ...args }), options);
      const stored = (): string | undefined => etc.entry("shadow", "demo")?.[1];
      async function becomes(args: object): Promise<string | undefined> {
        const first = await run(args);
        expect(first.outcome, JSON.stringify(first)).to.equal("changed");
        expect((await run(args)).outcome).to.equal("ok");
        return stored();
      }

      it("sets a hash, in place of none or another, and names only that it differs", async () => {
        const dry = await run({ password: secret(hash) }, { dryRun: true });
        expect([dry.outcome, stored()]).to.deep.equal(["would-change", "!"]);
        expect(await becomes({ password: secret(hash) })).to.equal(hash);
        expect((await run({ password: secret(other) }, { dryRun: true })).have["password"]).to.equal("different");
        expect(await becomes({ password: secret(other) })).to.equal(other);
        expect(etc.entry("shadow", "root")?.[1]).to.equal("*");
      });

      it("locks and unlocks, and leaves a locked user locked when only the hash changes", async () => {
        await becomes({ password: secret(hash), lock: true });
        expect(stored()).to.equal(`!${hash}`);
        expect(await becomes({ password: secret(other) })).to.equal(`!${other}`);
        expect(await becomes({ lock: false })).to.equal(other);
        expect(await becomes({ lock: true })).to.equal(`!${other}`);
        expect(await becomes({ password: secret(hash), lock: false })).to.equal(hash);
      });

      it("leaves a user locked whatever the lock looks like, and opens who had no password yet", async () => {
        for (const [before, after] of [
          ["!*", `!${hash}`],
          [`!!${other}`, `!${hash}`],
          ["!!", hash],
          ["*", hash],
        ] as const) {
          writeFileSync(`${etc.folder}/shadow`, `root:*:19000:0:99999:7:::\ndemo:${before}:19000:0:99999:7:::\n`);
          expect(await becomes({ password: secret(hash) }), before).to.equal(after);
        }
      });

      it("fails for a user that is not there, already in a dry run", async () => {
        for (const dryRun of [true, false]) {
          const { outcome, have, stderr } = await run({ name: "nobody2", lock: true }, { dryRun });
          expect([outcome, have["user"]]).to.deep.equal(["failed", "absent"]);
          expect(stderr).to.contain("there is no user nobody2");
        }
      });

      it("uses BusyBox's chpasswd and passwd where Debian's are not there", async () => {
        if (shell === "busybox sh") return; // its own applets come first, and Debian's BusyBox has no chpasswd
        const busybox =
          'case $* in --list) echo chpasswd ;; "chpasswd -e") IFS=: read -r n h; sed -i "s|^$n:[^:]*|$n:$h|" /etc/shadow ;; *) exit 9 ;; esac';
        const bin = { busybox, passwd: '[ "$*" = "-l demo" ] && exec sed -i "s/^demo:/demo:!/" /etc/shadow' };
        const on = etc.shell(shell, { bare: true });
        const set = await runStepOn(on, stepOf(userPassword, { name: "demo", password: secret(hash) }), { bin });
        expect(set.outcome, JSON.stringify(set)).to.equal("changed");
        expect(stored()).to.equal(hash);
        const locked = await runStepOn(on, stepOf(userPassword, { name: "demo", lock: true }), { bin });
        expect(locked.outcome, JSON.stringify(locked)).to.equal("changed");
        expect(stored()).to.equal(`!${hash}`);
      });
    });
});
