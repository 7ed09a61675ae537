import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { NodeView } from "#api/schemas.ts";
import { parseHostKey } from "#engine/transport/host-key.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { on, openBastion, stepsThat, type Bastion } from "#support/deploy.ts";
import { ownLab } from "#support/own-lab.ts";

const phrase = ["--passphrase-file", "passphrase"];
const pair = "/etc/kcore/controller/controller";

describe("rotate certs on real controllers that have IPv6 alone", function () {
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
  const serialOf = (node: LabNode, file: string): Promise<string> =>
    on(node, `openssl x509 -in ${file} -noout -serial`).then((text) => text.replace("serial=", "").trim());
  /** The serial number of the shown certificate, by openssl on the machine itself. */
  const shownBy = (node: LabNode): Promise<string> => {
    const own = `-cert ${pair}.crt -cert_chain ${pair}.crt -key ${pair}.key -CAfile /etc/kcore/certs/ca.crt`;
    const asked = `echo Q | openssl s_client -connect [${node.address}]:9090 ${own} 2>/dev/null || :`;
    return on(node, `{ ${asked}; } | openssl x509 -noout -serial`).then((text) => text.replace("serial=", "").trim());
  };

  it("O6: are deployed to Ready without an IPv4 address but loopback's", async () => {
    const shown = await Promise.all(nodes.map((node) => on(node, "ip -4 -o address show scope global")));
    expect(shown).to.deep.equal(["", ""]);
    const views = JSON.parse(await kcore("get", "nodes", "-o", "json")) as NodeView[];
    expect(views.map(({ address, status }) => [address, status])).to.have.deep.members(
      nodes.map(({ address }) => [address, "ready"]),
    );
    expect(await kcore("health")).to.contain("cluster is healthy");
  });

  it("puts new keys into use while the services run; a deployment finds them in order, and restarts keep them", async () => {
    const pids = () => Promise.all(nodes.map((node) => on(node, "systemctl show -P MainPID kcore-controller")));
    const before = await pids();
    const former = await Promise.all(nodes.map(shownBy));
    const nodeKeys = async (): Promise<readonly string[]> =>
      (JSON.parse(await kcore("get", "nodes", "-o", "json")) as NodeView[]).map(({ key }) => key);
    const formerKeys = await nodeKeys();
    await kcore("rotate", "certs", ...phrase);
    const shown = await Promise.all(nodes.map(shownBy));
    expect(shown).to.deep.equal(await Promise.all(nodes.map((node) => serialOf(node, `${pair}.crt`))));
    expect(shown.some((serial) => former.includes(serial))).to.equal(false);
    expect(await pids()).to.deep.equal(before);
    expect(await kcore("health")).to.contain("cluster is healthy");

    // The agents renew at their next heartbeat; a deployment at that moment would find the former key.
    const isOld = async (): Promise<boolean> => (await nodeKeys()).some((key) => formerKeys.includes(key));
    while (await isOld()) await sleep(500);
    await kcore("orchestrate", "deploy_node", "--on", "*", "--yes", ...phrase);
    // The second controller came into the roster after the first one's installation. No key or certificate changes.
    expect(stepsThat("changed", await bastion.events())).to.deep.equal([
      "a agent's configuration",
      "a agent's service",
    ]);
    await Promise.all(nodes.map((node) => on(node, "systemctl restart kcore-controller")));
    while ((await bastion.kcore(["health"])).code !== 0) await sleep(500);
    expect(await Promise.all(nodes.map(shownBy))).to.deep.equal(shown);
    expect(await kcore("health")).to.match(/cluster is healthy|controllers are healthy/);
  });
});
