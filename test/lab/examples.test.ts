import { cpSync } from "node:fs";
import { expect } from "chai";
import type { Lab, LabNode } from "#lab/lab.ts";
import { on, openBastion, labRoster, stepsThat, type Bastion } from "#support/deploy.ts";
import { exampleFolder, stepsNotInOrder } from "#support/examples.ts";
import { ownLab } from "#support/own-lab.ts";

describe("examples/web", () => {
  let lab: Lab;
  let bastion: Bastion;
  let nodes: readonly LabNode[];

  before(async () => {
    lab = await ownLab({ packages: ["nginx", "logrotate"] });
    nodes = await lab.up(["w1", "w2"].map((name) => ({ name, kind: "debian", disks: [] })));
    bastion = await openBastion({});
    cpSync(exampleFolder("web"), bastion.project, { recursive: true });
    const role = "roles: [web]\n    vars: { site: www.example.net }";
    const roster = (await labRoster(lab)).replaceAll(/^ +roles: .*\n/gm, "");
    await bastion.write({ "roster/web.yaml": roster.replaceAll(/^( {2}w\d:)$/gm, `$1\n    ${role}`) });
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  const site = (...more: readonly string[]): Promise<string> =>
    bastion.does("orchestrate", "site", "--on", "role:web", "--output", "plain", ...more);

  it("makes two web servers of bare machines, and changes nothing the second time", async () => {
    await site("--dry-run");
    await site();
    for (const node of nodes)
      expect(await on(node, "curl -fsS http://127.0.0.1/ || wget -qO- http://127.0.0.1/")).to.contain(node.name);
    expect(stepsNotInOrder(await (await site(), bastion.events()))).to.deep.equal([]);
  });

  it("names nine kinds of drift exactly, and corrects them", async () => {
    const drifts: Readonly<Record<string, string>> = {
      hostname: "hostname other",
      "administrator's key": "sed -i d /home/admin/.ssh/authorized_keys",
      "administrator's rights": "echo 'admin ALL=(ALL) ALL' >/etc/sudoers.d/admin",
      "kernel settings": "echo 512 >/proc/sys/net/core/somaxconn",
      "open files": "rm /etc/security/limits.d/web.conf",
      page: "echo defaced >/srv/www/index.html",
      "site is on": "rm /etc/nginx/sites-enabled/site.conf",
      firewall: "nft add rule inet kcore input tcp dport 23 accept",
      nginx: "systemctl stop nginx",
    };
    const [node] = nodes as readonly [LabNode];
    for (const drift of Object.values(drifts)) await on(node, drift);
    await site("--dry-run");
    const plan = await bastion.events();
    expect(stepsThat("would-change", plan, node.name)).to.have.members(Object.keys(drifts));
    await site();
    await site();
    expect(stepsNotInOrder(await bastion.events())).to.deep.equal([]);
  });
});
