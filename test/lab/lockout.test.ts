import { expect } from "chai";
import { firewallRules } from "#engine/modules/firewall-rules.ts";
import { sudoersManaged } from "#engine/modules/sudoers-managed.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { labSession } from "#support/lab-session.ts";
import { ownLab } from "#support/own-lab.ts";
import { draftOf } from "#support/sessions.ts";
import { stepOf } from "#support/steps.ts";

/** Changes that would lock the bastion out of a machine with systemd, or leave the machine open. */
describe("sudo and the firewall of a real node", () => {
  let lab: Lab;
  let n1: LabNode;
  before(async () => {
    lab = await ownLab();
    [n1] = (await lab.up([{ name: "n1", kind: "debian", disks: [] }])) as [LabNode];
    await n1.exec("apt-get -q update && apt-get -qy install --no-install-recommends nftables", { timeout: 120_000 });
  });
  after(() => lab?.down());

  let runs = 0;
  const perform = async (user: string, step: ReturnType<typeof stepOf>): Promise<[string | undefined, string[]]> => {
    const run = labSession(n1, user, { runId: `lockout${++runs}` });
    const { problem, outcome } = await run.session.perform([{ stage: "s", drafts: [draftOf("a", step)] }]);
    await run.session.finish(outcome);
    return [problem?.code, run.outcomes()];
  };

  it("keep a way to become root for a login that came by sudo", async () => {
    const refused = ["SUDO_LOCKS_OUT", ["a failed"]];
    const less = { name: "lab", user: "ops", commands: ["/usr/bin/id"] };
    expect(await perform("ops", stepOf(sudoersManaged, { name: "lab", state: "absent" }))).to.deep.equal(refused);
    expect(await perform("ops", stepOf(sudoersManaged, less))).to.deep.equal(refused);
    const all = { ...less, commands: ["ALL"], noPassword: true };
    expect(await perform("ops", stepOf(sudoersManaged, all))).to.deep.equal([undefined, ["a changed"]]);
    expect((await n1.exec("sudo -n id -u", { user: "ops" })).stdout.trim()).to.equal("0");
  });

  it("survive start, reload and restart of nftables.service, and a reboot", async () => {
    const step = stepOf(firewallRules, { allow: [{ ports: 22 }] });
    expect(await perform("ops", step)).to.deep.equal([undefined, ["a changed"]]);
    for (const verb of ["start", "reload", "restart"]) {
      const { stdout } = await n1.exec(`nft add table inet other; systemctl ${verb} nftables; nft list tables`);
      expect(stdout, verb).to.contain("table inet kcore").and.not.to.contain("other");
      expect(await perform("root", step), verb).to.deep.equal([undefined, ["a ok"]]);
    }
    await n1.powerCut();
    await n1.start();
    expect(await perform("root", step)).to.deep.equal([undefined, ["a ok"]]);
    const gone = stepOf(firewallRules, { state: "absent" });
    expect(await perform("root", gone)).to.deep.equal([undefined, ["a changed"]]);
    expect(await perform("root", gone)).to.deep.equal([undefined, ["a ok"]]);
    const { stdout } = await n1.exec("systemctl restart nftables && systemctl is-active nftables && nft list tables");
    expect(stdout).to.contain("active").and.not.to.contain("kcore");
  });
});
