import { expect } from "chai";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { labSession } from "#support/lab-session.ts";
import { ownLab } from "#support/own-lab.ts";
import { draftOf } from "#support/sessions.ts";

describe("becoming root on a real node", () => {
  const password = "lab-password";
  let lab: Lab;
  let n1: LabNode;
  before(async () => {
    lab = await ownLab();
    [n1] = (await lab.up([{ name: "n1", kind: "debian", disks: [] }])) as [LabNode];
    await n1.exec(
      "useradd -m -s /bin/bash plain && cp -r /home/ops/.ssh /home/plain/ && chown -R plain: /home/plain/.ssh",
    );
  });
  after(() => lab?.down());

  const whoami: Step = {
    want: {},
    probe: sh``,
    apply: sh`id -u; tty || :; ps -o args= -e | grep -c ${"[l]ab-password"} || :`,
    always: true,
  };

  /** One run as that user; the password shows in none of its events. */
  async function runAs(user: string, given?: string, setup = ":") {
    await n1.exec(`rm -f /etc/sudoers.d/test; ${setup}`);
    let asked = 0;
    const run = labSession(n1, user, {
      // Like a roster's password: there is no second one.
      sudoPassword: (again = false) => {
        if (!again) asked++;
        return Promise.resolve(again ? undefined : given);
      },
    });
    const { outcome, problem } = await run.session.perform([{ stage: "s", drafts: [draftOf("who", whoami)] }]);
    await run.session.finish(outcome);
    const printed = run.events.flatMap((event) => (event.type === "step.output" ? [event.text] : [])).join("");
    if (given !== undefined) expect(JSON.stringify(run.events)).to.not.include(given);
    return { code: problem?.code, hint: problem?.hint, said: printed, asked };
  }

  const sudoers = (line: string): string => `printf '${line}\\n' >/etc/sudoers.d/test`;
  const asRoot = { code: undefined, said: "0\nnot a tty\n0\n" };
  for (const { what, user = "opspw", setup, ends } of [
    { what: "needs no password where sudo wants none, and asks for none", user: "ops", ends: { ...asRoot, asked: 0 } },
    { what: "F-21 gives sudo its password, which shows nowhere", ends: { ...asRoot, asked: 1 } },
    { what: "gives a lecture no chance to confuse", setup: sudoers("Defaults:opspw lecture=always"), ends: asRoot },
  ])
    it(`S-8 ${what}`, async () => {
      expect(await runAs(user, password, setup)).to.include(ends);
    });

  it("S-8 F-21 distinguishes requiretty from a wrong password, without a hang", async () => {
    const result = await runAs("opspw", password, sudoers("Defaults:opspw requiretty"));
    expect(result.code).to.equal("SUDO_FAILED");
    expect(result.hint).to.include("requiretty");
  });

  it("S-8 F-21 reports a user who may not use sudo, and a node without sudo", async () => {
    expect((await runAs("plain", password)).code).to.match(/^SUDO_(FAILED|PASSWORD_WRONG)$/);
    const hidden = await runAs("opspw", password, "mv /usr/bin/sudo /usr/bin/sudo.off");
    await n1.exec("mv /usr/bin/sudo.off /usr/bin/sudo");
    expect(hidden.code).to.equal("SUDO_MISSING");
  });

  it("S-8 S-7 never runs an unread password as a command", async () => {
    // sudo asks for `true`, but not for the shell itself: the password stays unread.
    const result = await runAs(
      "opspw",
      "touch /run/executed",
      "printf 'opspw ALL=(ALL) NOPASSWD: /bin/sh, /usr/bin/sh\\n' >/etc/sudoers.d/test; rm -f /run/executed",
    );
    expect(result).to.include({ code: undefined, said: "0\nnot a tty\n0\n" });
    expect((await n1.exec("test -e /run/executed")).code).to.equal(1);
  });
});
