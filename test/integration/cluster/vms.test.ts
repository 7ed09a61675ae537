import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { VmView } from "#api/record-schemas.ts";
import { ClusterSite } from "#support/cluster-site.ts";
import { eventually } from "#support/cluster.ts";
import { areAllInStep } from "#support/controllers.ts";

const gib = 1024 ** 3;

describe("records of VMs, networks and images", () => {
  let site: ClusterSite;
  const succeed = async (...words: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await site.call(...words);
    expect(code, `${words.join(" ")}: ${stderr}`).to.equal(0);
    return stdout;
  };
  const refused = async (...words: readonly string[]): Promise<string> => {
    const { code, stderr } = await site.call(...words);
    expect(code, words.join(" ")).not.to.equal(0);
    return stderr;
  };
  const vmsAt = async (index: number): Promise<readonly VmView[]> =>
    JSON.parse(await succeed("-s", site.at(index).endpoint, "get", "vms", "-o", "json")) as readonly VmView[];
  const node = (hostname: string, dc: string, memory = 8) =>
    site.register(hostname, { dc, cpu: 4, memory: memory * gib, storage: { capacity: 100 * gib } });

  before(async () => {
    site = await ClusterSite.open(2, { dcs: ["DC1", "DC2"] });
    await node("n1", "DC1");
    await node("n2", "DC2");
    await node("gone", "DC3");
    await eventually(() => areAllInStep(site.controllers));
  });
  after(() => site?.stop());

  it("are created, listed, changed and deleted, and a VM gets a node of its datacenter with room", async () => {
    await succeed("create", "image", "debian", "--url", "https://example.org/d.qcow2", "--sha256", "a".repeat(64));
    await succeed("create", "network", "lan", "--type", "bridge", "--vlan-id", "12", "--dc", "DC2");
    const size = ["--cpus", "2", "--memory", "4GiB", "--disk", "20G", "--image", "debian"];
    expect(await succeed("create", "vm", "web", ...size, "--networks", "lan", "--label", "tier=web")).to.equal(
      "vm/web created on n2 (DC2)\n",
    );
    expect(await succeed("get", "vms", "-l", "tier=web", "--dc", "DC2")).to.match(
      /^NAME +STATE +NODE +DC +CPUS +MEMORY +DISK +IMAGE +NETWORKS +AGE\nweb +placed +n2 +DC2 +2 +4 GiB +20 GiB +debian +lan /,
    );
    expect(await succeed("get", "networks")).to.match(/\nlan +bridge +- +255\.255\.255\.0 +- +12 +DC2 /);
    expect(await succeed("get", "images", "debian", "-o", "yaml")).to.contain("format: qcow2");
    expect(await refused("create", "vm", "web", ...size)).to.contain("[OBJECT_EXISTS]");
    expect(await refused("create", "vm", "x", "--cpus", "2")).to.contain("memory: ");
    expect(await refused("create", "vm", "x", ...size, "--networks", "wan")).to.contain("there is no network wan");
    expect(await refused("delete", "image", "debian")).to.contain("VM web uses debian");
    const full = await refused("set", "vm", "web", "--memory", "9GiB");
    expect(full).to.contain("VM_NO_ROOM").and.contain("n2: memory: 9 GiB wanted, 8 GiB free");
    expect(await refused("create", "vm", "x", ...size, "--dc", "DC9")).to.contain("n1: is in DC1, not in DC9");
    expect(await succeed("set", "vm", "web", "--memory", "6GiB", "--label", "tier-")).to.contain("updated on n2");
    expect(await succeed("set", "vm", "web")).to.contain("unchanged");
    expect(await succeed("delete", "vm", "web")).to.equal("vm/web deleted\n");
    await succeed("delete", "network", "lan");
    expect(await refused("set", "vm", "web")).to.contain("[OBJECT_UNKNOWN]");
  });

  it("come from manifests, the forerunner's too, and a second apply changes nothing", async () => {
    const file = join(site.project.project, "vm.yaml");
    const image = "https://example.org/d.qcow2";
    const spec = `{cpu: 1, memory_bytes: 2G, imageSha256: ${"b".repeat(64)}, disks: [{backendHandle: "${image}"}]`;
    writeFileSync(
      file,
      `kind: Network\nmetadata: {name: default}\nspec: {gatewayIp: 10.240.0.1}\n---\nkind: vm\nmetadata: {name: app}\nspec: ${spec}, nics: [{network: default, model: virtio}], dc_id: DC1}\n`,
    );
    expect(await succeed("apply", "-f", file, "--dry-run")).to.contain("vm/app created (dry run)");
    expect(await succeed("apply", "-f", file)).to.equal("network/default created\nvm/app created\n");
    expect(await succeed("apply", "-f", file)).to.equal("network/default unchanged\nvm/app unchanged\n");
    expect((await vmsAt(0))[0]).to.deep.include({ name: "app", node: "n1", state: "placed", problems: [] });
    writeFileSync(file, "kind: VM\nmetadata: {name: app}\nspec: {cpus: 1, memroy: 2G}\n");
    expect(await refused("apply", "-f", file)).to.match(/vm\.yaml:3:17 .*memroy[^]*did you mean “memory”/);
  });

  it("of two controllers that placed at once are told as overcommitted", async () => {
    const value = (cpus: number) => ({ value: { labels: {}, spec: { cpus, memory: gib, dc: "DC2" } } });
    await Promise.all(
      site.controllers.map(({ operator }, index) => operator.call("putObject", value(3), { id: `VM/twin${index}` })),
    );
    await eventually(() => areAllInStep(site.controllers));
    const twins = (await vmsAt(1)).filter(({ name }) => name.startsWith("twin"));
    expect(twins.map(({ state }) => state)).to.include("overcommitted");
    expect(twins[0]?.problems).to.deep.equal(["cpus: 2 too much"]);
    await succeed("delete", "vm", "twin0", "twin1");
  });

  it("stay when their node is removed, without a node, until they are placed anew", async () => {
    expect(await succeed("create", "vm", "db", "--cpus", "1", "--memory", "1G", "--dc", "DC3")).to.contain("on gone");
    await succeed("node", "remove", "gone", "--yes");
    expect(await succeed("get", "vms", "db")).to.match(/\ndb +no node +- +DC3 /);
    expect(await succeed("set", "vm", "db", "--dc", "DC1")).to.equal("vm/db updated on n1 (DC1)\n");
  });
});
