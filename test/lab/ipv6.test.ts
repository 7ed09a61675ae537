import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { NodeView } from "#api/schemas.ts";
import { parseHostKey } from "#engine/transport/host-key.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { on, openBastion, type Bastion } from "#support/deploy.ts";
import { ownLab } from "#support/own-lab.ts";

const phrase = ["--passphrase-file", "passphrase"];

describe("real machines with IPv6 only", function () {
  this.timeout(1_800_000);
  let lab: Lab;
  let bastion: Bastion;
  let nodes: readonly LabNode[];

  before(async () => {
    lab = await ownLab({ ipv6: true });
    nodes = await lab.up(["a", "b"].map((name) => ({ name, kind: "debian" as const, nix: true, disks: ["64M"] })));
    bastion = await openBastion({
      "roster/nodes.yaml": `defaults: { identityFile: ${nodes[0]?.identityFile} }\nnodes: {}\n`,
    });
    await writeFile(join(bastion.project, "passphrase"), "correct horse battery staple\n", { mode: 0o600 });
    await kcore("create", "cluster", "--controller", `[${nodes[0]?.address}]:9090`, "--context", "prod", ...phrase);
    for (const [index, { name, address, hostKey }] of nodes.entries()) {
      const joined = index === 0 ? [] : ["--join-controller", `[${nodes[0]?.address}]:9090`];
      const { fingerprint = "" } = parseHostKey(hostKey) ?? {};
      const named = ["--hostname", name, "-k", "--host-key", fingerprint, "--dc-id", "DC1", "--run-controller"];
      const os = ["--os-disk", "/dev/sda", "--os-installed"];
      await kcore("node", "install", "--node", `[${address}]:9091`, ...os, ...named, ...joined, ...phrase);
    }
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  const kcore = async (...words: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await bastion.kcore(words, { timeout: 600_000 });
    expect(code, `kcore ${words.join(" ")}\n${stdout}${stderr}`).to.equal(0);
    return stdout;
  };
  it("are deployed without an IPv4 address except loopback's", async () => {
    const shown = await Promise.all(nodes.map((node) => on(node, "ip -4 -o address show scope global")));
    expect(shown).to.deep.equal(["", ""]);
    const views = JSON.parse(await kcore("get", "nodes", "-o", "json")) as NodeView[];
    expect(views.map(({ address, status }) => [address, status])).to.have.deep.members(
      nodes.map(({ address }) => [address, "ready"]),
    );
    expect(await kcore("health")).to.contain("cluster is healthy");
  });
});
